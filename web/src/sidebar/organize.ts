// Pinning and archiving conversations. A change is displayed at once and reverted if the service refuses it.
import { api, body, type Conversation, Refusal } from "../api/client";
import { cacheConversation, conversationQuery, queryClient, refetchInAllTabs } from "../api/queries";
import { noticeSignOut } from "../api/session-state";
import { toast } from "../controls/toast";
import type { Localization } from "../messages/localization";

export type Placement = { pinned: boolean } | { archived: boolean };

function put(conversation: Conversation, placement: Placement): Promise<Conversation> {
  const params = {
    path: { conversation_id: conversation.conversation_id },
    header: { "If-Match": `"v${conversation.version}"` },
  };
  return body(
    "pinned" in placement
      ? api.PUT("/conversations/{conversation_id}/pin", { params, body: placement })
      : api.PUT("/conversations/{conversation_id}/archive", { params, body: placement }),
  );
}

/** Returns a conversation as it will be after a change. */
function placed(conversation: Conversation, placement: Placement): Conversation {
  const now = new Date().toISOString();
  return "pinned" in placement
    ? { ...conversation, pinned_at: placement.pinned ? now : null }
    : { ...conversation, archived_at: placement.archived ? now : null };
}

/** Pins or archives a conversation, or reverses that. Returns whether it is stored; shows why, if not. */
async function place(before: Conversation, placement: Placement, t: Localization["t"]): Promise<boolean> {
  cacheConversation(placed(before, placement));
  try {
    cacheConversation(await put(before, placement).catch((refusal: unknown) => putAgain(refusal, placement)));
    return true;
  } catch (refusal) {
    cacheConversation(before);
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

/** Repeats a change that was refused because something else of the conversation has changed, for example its title. */
function putAgain(refusal: unknown, placement: Placement): Promise<Conversation> {
  if (!(refusal instanceof Refusal) || refusal.code !== "stale_version") throw refusal;
  return put(refusal.problem?.current as unknown as Conversation, placement);
}

export const setPinned = (conversation: Conversation, pinned: boolean, t: Localization["t"]): Promise<boolean> =>
  place(conversation, { pinned }, t);

/** Archives conversations and offers to undo it. */
export async function archive(conversations: readonly Conversation[], t: Localization["t"]): Promise<void> {
  const done: Conversation[] = [];
  for (const one of conversations) if (await place(one, { archived: true }, t)) done.push(one);
  const [first] = done;
  if (first === undefined) return;
  const title = first.title || t("pages.untitled");
  toast(done.length === 1 ? t("pages.archive.done", { title }) : t("pages.archive.done_many", { count: done.length }), {
    action: { label: t("pages.delete.undo"), run: () => done.forEach((one) => void restore(one, t)) },
  });
}

/** Moves a conversation from the archive back to the list. */
export async function restore(conversation: Conversation, t: Localization["t"]): Promise<boolean> {
  const page = queryClient.getQueryData(conversationQuery(conversation.conversation_id).queryKey);
  return place({ ...conversation, version: page?.version ?? conversation.version }, { archived: false }, t);
}
