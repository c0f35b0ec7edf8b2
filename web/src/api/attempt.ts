// The Idempotency-Key of a request that creates something and that the user may repeat, for example a share or a copy of a
// branch: a repetition after a lost response must return what was created, and not create a second one. Pure.
import { Refusal } from "./problem";

/**
 * Returns a function that sends a request with a key. If the same request, given as JSON, is repeated after a response was
 * lost, it has the same key, even if the dialog that sent it was closed in between. A key belongs to one request.
 */
export function attempts(newKey: () => string = () => crypto.randomUUID()) {
  let unfinished: { request: string; key: string } | null = null;
  return async <T>(request: string, send: (key: string) => Promise<T>): Promise<T> => {
    if (unfinished?.request !== request) unfinished = { request, key: newKey() };
    try {
      const created = await send(unfinished.key);
      unfinished = null;
      return created;
    } catch (refusal) {
      if (!keepsKey(refusal)) unfinished = null;
      throw refusal;
    }
  };
}

/**
 * Whether a repetition after this refusal needs the same key: the resource may exist, or the service did not consider
 * the request. Any other refusal is final, and the service may have stored it under the key.
 */
const keepsKey = (refusal: unknown): boolean =>
  refusal instanceof Refusal &&
  (refusal.outcomeUnknown || [401, 403, 429].includes(refusal.status) || refusal.code === "idempotency_in_progress");
