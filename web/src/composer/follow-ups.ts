// What can be done with an item of the queue. It is the service's: nothing is shown as done before it has said so.
import { api, body, Refusal, type FollowUp } from "../api/client";
import { notice } from "../api/access";
import { changed } from "../api/queries";
import { toast } from "../controls/toast";
import type { Speech } from "../words/speech";

/** Releases, holds or cancels an item, as it was seen here; false when that did not happen, which is told. */
export async function changeFollowUp(conversation: string, item: FollowUp, state: "queued" | "held" | "cancelled", say: Speech["say"]): Promise<boolean> {
  const path = { conversation_id: conversation, follow_up_id: item.follow_up_id };
  try {
    await body(api.PATCH("/conversations/{conversation_id}/follow-ups/{follow_up_id}", { params: { path }, body: { state, version: item.version } }));
    return true;
  } catch (error) {
    notice(error);
    // Changed or begun elsewhere meanwhile: what stands is shown at once.
    const elsewhere = error instanceof Refusal && (error.status === 409 || error.status === 404);
    toast(say(elsewhere ? "composer.waiting.changed" : "composer.waiting.failed"), { kind: "problem" });
    return false;
  } finally {
    void changed("conversation", conversation);
  }
}
