// Changes to the queued follow-ups of a conversation. No change is shown before the service has confirmed it.
import { api, body, Refusal, type FollowUp } from "../api/client";
import { noticeSignOut } from "../api/session-state";
import { refetchInAllTabs } from "../api/queries";
import { toast } from "../controls/toast";
import type { Localization } from "../messages/localization";

/** Sets the state of a follow-up if its version is unchanged. Returns false, and shows why, if that failed. */
export async function changeFollowUp(
  conversation: string,
  item: FollowUp,
  state: "queued" | "held" | "cancelled",
  t: Localization["t"],
): Promise<boolean> {
  const path = { conversation_id: conversation, follow_up_id: item.follow_up_id };
  try {
    await body(
      api.PATCH("/conversations/{conversation_id}/follow-ups/{follow_up_id}", {
        params: { path },
        body: { state, version: item.version },
      }),
    );
    return true;
  } catch (error) {
    noticeSignOut(error);
    // 409 and 404: it was changed or started elsewhere in the meantime; the current state is refetched below.
    const elsewhere = error instanceof Refusal && (error.status === 409 || error.status === 404);
    toast(t(elsewhere ? "composer.waiting.changed" : "composer.waiting.failed"), { kind: "problem" });
    return false;
  } finally {
    void refetchInAllTabs("conversation", conversation);
  }
}
