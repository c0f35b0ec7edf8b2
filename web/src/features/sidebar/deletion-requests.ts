// Sends the deletions of conversations that the user has confirmed.
import { startBatch } from "../../api/batch";
import { replaceConversation } from "../../api/conversation-pages";
import { noticeSignOut } from "../../api/session-state";
import { api, type Conversation, Refusal } from "../../api/client";
import { archiveQuery, refetchInAllTabs, conversationsQuery, queryClient } from "../../api/queries";
import { toast } from "../../controls/toast";
import type { Localization } from "../../messages/localization";
import { sending, setPending, useDeletion, type ServerConfirmation } from "./deletion";
import { deselect, selectAgain } from "./selecting";
import { countsOf, outcomeOf } from "./selection";

/**
 * Waits for "Undo", which calls onUndo, then sends the requests; at once for the conversations in which a turn is live,
 * because the service then asks to confirm.
 */
export function startDeletion(conversations: readonly Conversation[], t: Localization["t"], onUndo: () => void): void {
  const live = conversations.filter((one) => one.live_turn_id !== null);
  if (live.length > 0) sendDeletion(live, t);
  const others = conversations.filter((one) => one.live_turn_id === null);
  const [first] = others;
  if (first === undefined) return;
  const text =
    others.length === 1
      ? t("pages.delete.pending", { title: first.title || t("pages.untitled") })
      : t("pages.delete.pending_many", { count: others.length });
  let pageEnds = false;
  const closeToast = toast(text, {
    action: {
      label: t("pages.delete.undo"),
      run: () => {
        setPending(others, null);
        onUndo();
      },
    },
    then: () => sendDeletion(others, t, new Map(), pageEnds),
  });
  setPending(others, () => {
    pageEnds = true;
    closeToast();
  });
}

/** Sends deletions, with the tokens of those that the user has confirmed for the service; all at once if the page ends. */
export function sendDeletion(
  conversations: readonly Conversation[],
  t: Localization["t"],
  tokens: ReadonlyMap<string, string> = new Map(),
  pageEnds = false,
): void {
  const sent = requestDeletions(conversations, t, tokens, pageEnds).finally(() => sending.delete(sent));
  sending.add(sent);
}

async function requestDeletions(
  conversations: readonly Conversation[],
  t: Localization["t"],
  tokens: ReadonlyMap<string, string>,
  pageEnds: boolean,
): Promise<number> {
  const batch = startBatch(conversations, (one) => requestDeletion(one, tokens.get(one.conversation_id)));
  setPending(conversations, batch.startAll);
  if (pageEnds) batch.startAll();
  const { done, refused } = outcomeOf(conversations, await batch.results);
  void refetchInAllTabs("conversations");
  void refetchInAllTabs("archive");
  const unconfirmed = done.filter((one) => one !== null);
  if (unconfirmed.length > 0)
    useDeletion.setState(({ serverConfirmations }) => ({
      serverConfirmations: [...serverConfirmations, ...unconfirmed],
    }));
  const [first] = refused;
  if (first === undefined) return 0;
  refused.forEach(({ reason }) => noticeSignOut(reason));
  const remaining = refused.map(({ item }) => item);
  setPending(remaining, null);
  if (conversations.length > 1) selectAgain(remaining);
  const text =
    conversations.length === 1
      ? t("pages.delete.failed", { title: first.item.title || t("pages.untitled") })
      : t("pages.selection.deleted_partly", countsOf({ done: done.filter((one) => one === null), refused }));
  toast(text, {
    kind: "problem",
    action: { label: t("pages.retry"), run: () => (deselect(remaining), sendDeletion(remaining, t)) },
  });
  return refused.length;
}

/** Requests the deletion of a conversation. Returns the confirmation that the service requires; null: it is deleted. */
async function requestDeletion(conversation: Conversation, token?: string): Promise<ServerConfirmation | null> {
  const id = conversation.conversation_id;
  try {
    await api.DELETE("/conversations/{conversation_id}", {
      params: { path: { conversation_id: id }, header: token === undefined ? {} : { "X-Confirm": token } },
      keepalive: true,
    });
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    const { confirmation } = refusal;
    if (confirmation !== null) return { conversation, confirmation };
    if (refusal.status !== 404) throw refusal;
  }
  removeFromCache(conversation);
  return null;
}

function removeFromCache(conversation: Conversation): void {
  const id = conversation.conversation_id;
  for (const { queryKey } of [conversationsQuery, archiveQuery])
    queryClient.setQueryData(queryKey, (list) => list && replaceConversation(list, id, () => null));
  queryClient.removeQueries({ queryKey: ["conversation", id] });
  queryClient.removeQueries({ queryKey: ["messages", id] });
  setPending([conversation], null);
}
