// The erasure of the account, and its report on the page that is loaded afterwards.
import { api, body, Refusal } from "./client";
import type { Confirmation } from "./problem";
import { handleSignOut } from "./session-state";

/** A state of the history entry survives the reload, although the service makes the browser delete all stored data. */
const historyKey = "erasure";

/** Requests the erasure. Returns the confirmation that the service requires first; null: the account is being erased. */
export async function eraseAccount(token?: string): Promise<Confirmation | null> {
  try {
    const header = token === undefined ? {} : { "X-Confirm": token };
    const erasure = await body(api.DELETE("/account", { params: { header } }));
    handleSignOut(() => {
      // Past the router, which would render another page of the account before this one is reloaded.
      const state = { ...(history.state as object | null), [historyKey]: erasure.erasure_id };
      History.prototype.replaceState.call(history, state, "", "/");
      location.reload();
    });
    return null;
  } catch (refusal) {
    if (refusal instanceof Refusal && refusal.confirmation !== null) return refusal.confirmation;
    throw refusal;
  }
}

/** Returns the identifier of the erasure after which this page was loaded; null: there was none. */
export function reportedErasure(): string | null {
  const id = (history.state as Record<string, unknown> | null)?.[historyKey];
  return typeof id === "string" ? id : null;
}
