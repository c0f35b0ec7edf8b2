// Deleting conversations. The service cannot undo it, so the user confirms it, and then the requests wait a few seconds
// for "Undo"; they are sent at once if the page is hidden or left. A row is marked and stays until the service has deleted
// its conversation.
import { useEffect } from "react";
import { create } from "zustand";
import { startBatch } from "../../api/batch";
import { replaceConversation } from "../../api/conversation-pages";
import { noticeSignOut } from "../../api/session-state";
import { api, type Conversation, Refusal } from "../../api/client";
import type { Confirmation } from "../../api/problem";
import { archiveQuery, refetchInAllTabs, conversationsQuery, queryClient } from "../../api/queries";
import { toast } from "../../controls/toast";
import type { Localization } from "../../messages/localization";
import { deselect, selectAgain } from "./selecting";
import { countsOf, outcomeOf } from "./selection";

interface ServerConfirmation {
  conversation: Conversation;
  confirmation: Confirmation;
}

interface Deletion {
  /** The conversations whose deletion the user must confirm before a request is sent; empty: none. */
  confirming: readonly Conversation[];
  /** Those whose deletion the user must confirm for the service, because a turn is live in them; empty: none. */
  serverConfirmations: readonly ServerConfirmation[];
  /** The pending deletions by conversation, each with a function that ends the wait for "Undo" and sends it. */
  pending: ReadonlyMap<string, () => void>;
}

export const useDeletion = create<Deletion>(() => ({ confirming: [], serverConfirmations: [], pending: new Map() }));

export const confirmDeletion = (...conversations: readonly Conversation[]): void =>
  useDeletion.setState({ confirming: conversations });

/** Closes the dialogs; nothing is deleted. */
export function cancelDeletions(): void {
  const unconfirmed = useDeletion.getState().serverConfirmations.map(({ conversation }) => conversation);
  useDeletion.setState({ confirming: [], serverConfirmations: [] });
  setPending(unconfirmed, null);
}

function setPending(conversations: readonly Conversation[], sendNow: (() => void) | null): void {
  useDeletion.setState(({ pending }) => {
    const next = new Map(pending);
    for (const { conversation_id } of conversations)
      if (sendNow === null) next.delete(conversation_id);
      else next.set(conversation_id, sendNow);
    return { pending: next };
  });
}

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

/** The requests in flight. */
const sending = new Set<Promise<void>>();

/** Sends the deletions that wait for "Undo" or for others, and waits for the responses to all requests. */
export async function sendDeletions(): Promise<void> {
  for (const sendNow of new Set(useDeletion.getState().pending.values())) sendNow();
  await Promise.all(sending);
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
): Promise<void> {
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
  if (first === undefined) return;
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

/** Sends the pending deletions when the page is hidden or left, because "Undo" cannot be pressed then. */
export function useSendWhenHidden(): void {
  useEffect(() => {
    const onVisibilityChange = () => {
      if (document.hidden) void sendDeletions();
    };
    const onPageHide = () => void sendDeletions();
    document.addEventListener("visibilitychange", onVisibilityChange);
    window.addEventListener("pagehide", onPageHide);
    return () => {
      document.removeEventListener("visibilitychange", onVisibilityChange);
      window.removeEventListener("pagehide", onPageHide);
    };
  }, []);
}
