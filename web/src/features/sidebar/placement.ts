// Pinning, archiving and moving conversations. A change is displayed at once and reverted if the service refuses it.
import { api, body, type Conversation } from "../../api/client";
import type { Pace } from "../../api/batch";
import { repeatOnCurrent, storeInOrder } from "../../api/change-queue";
import { conversationQuery, queryClient, refetchInAllTabs } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { toast } from "../../controls/toast";
import type { Localization } from "../../messages/localization";

export type Placement = { pinned: boolean } | { archived: boolean } | { project_id: string | null };

/** The change is displayed already, so the request outlives the page. */
function put(conversation: Conversation, placement: Placement, signal: AbortSignal): Promise<Conversation> {
  const params = {
    path: { conversation_id: conversation.conversation_id },
    header: { "If-Match": `"v${conversation.version}"` },
  };
  const init = { params, keepalive: true, signal };
  return body(
    "pinned" in placement
      ? api.PUT("/conversations/{conversation_id}/pin", { ...init, body: placement })
      : "archived" in placement
        ? api.PUT("/conversations/{conversation_id}/archive", { ...init, body: placement })
        : api.PUT("/conversations/{conversation_id}/project", { ...init, body: placement }),
  );
}

/**
 * Displays a change and stores it, also if something else of the conversation has changed in the meantime, for example its title. pace
 * calls its argument when the request can be sent.
 */
export const putPlacement = (conversation: Conversation, placement: Placement, pace?: Pace["run"]) =>
  storeInOrder(
    conversation,
    changeOf(placement),
    (base, signal) =>
      put(base, placement, signal).catch((refusal: unknown) =>
        repeatOnCurrent(refusal, (current) => put(current, placement, signal)),
      ),
    pace,
  );

function changeOf(placement: Placement): Partial<Conversation> {
  const now = new Date().toISOString();
  if ("pinned" in placement) return { pinned_at: placement.pinned ? now : null };
  return "archived" in placement ? { archived_at: placement.archived ? now : null } : placement;
}

/** Pins or archives a conversation, or reverses that. Returns whether it is stored; shows why, if not. */
async function place(before: Conversation, placement: Placement, t: Localization["t"]): Promise<boolean> {
  try {
    await putPlacement(before, placement);
    return true;
  } catch (refusal) {
    noticeSignOut(refusal);
    toast(t("pages.organize.failed", { title: before.title || t("pages.untitled") }), {
      kind: "problem",
      action: { label: t("pages.retry"), run: () => void place(before, placement, t) },
    });
    return false;
  } finally {
    void refetchInAllTabs("conversations");
    void refetchInAllTabs("archive");
    void refetchInAllTabs("conversation", before.conversation_id);
  }
}

export const setPinned = (conversation: Conversation, pinned: boolean, t: Localization["t"]): Promise<boolean> =>
  place(conversation, { pinned }, t);

/** Archives a conversation and offers to undo it. */
export async function archive(conversation: Conversation, t: Localization["t"]): Promise<void> {
  if (!(await place(conversation, { archived: true }, t))) return;
  toast(t("pages.archive.done", { title: conversation.title || t("pages.untitled") }), {
    action: { label: t("pages.delete.undo"), run: () => void restore(conversation, t) },
  });
}

/** Moves a conversation from the archive back to the list. */
export async function restore(conversation: Conversation, t: Localization["t"]): Promise<boolean> {
  const page = queryClient.getQueryData(conversationQuery(conversation.conversation_id).queryKey);
  return place({ ...conversation, version: page?.version ?? conversation.version }, { archived: false }, t);
}
