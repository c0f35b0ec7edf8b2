// Deleting a conversation. The service cannot undo it, so the user confirms it, and then the request waits a few
// seconds for "Undo"; it is sent at once if the page is hidden or left. The row is marked and stays until the service
// has deleted the conversation.
import { useEffect } from "react";
import { create } from "zustand";
import { noticeSignOut } from "../api/session-state";
import { api, type Conversation, Refusal } from "../api/client";
import type { Confirmation } from "../api/problem";
import { refetchInAllTabs, conversationsQuery, queryClient } from "../api/queries";
import { toast } from "../controls/toast";
import type { Localization } from "../messages/localization";

interface Deletion {
  /** The conversation whose deletion the user must confirm before a request is sent; null: none. */
  confirming: Conversation | null;
  /** Set while the user must confirm the deletion for the service, because a turn is live in the conversation. */
  serverConfirmation: { conversation: Conversation; confirmation: Confirmation } | null;
  /** The pending deletions by conversation, each with a function that ends the wait for "Undo" and sends it. */
  pending: ReadonlyMap<string, () => void>;
}

export const useDeletion = create<Deletion>(() => ({ confirming: null, serverConfirmation: null, pending: new Map() }));

export const confirmDeletion = (conversation: Conversation): void => useDeletion.setState({ confirming: conversation });

/** Closes the dialogs; nothing is deleted. */
export function cancelDeletions(): void {
  const { serverConfirmation } = useDeletion.getState();
  useDeletion.setState({ confirming: null, serverConfirmation: null });
  if (serverConfirmation !== null) setPending(serverConfirmation.conversation.conversation_id, null);
}

export function setPending(id: string, sendNow: (() => void) | null): void {
  useDeletion.setState(({ pending }) => {
    const next = new Map(pending);
    if (sendNow === null) next.delete(id);
    else next.set(id, sendNow);
    return { pending: next };
  });
}

/**
 * Waits for "Undo", which calls onUndo, then sends the request; at once if a turn is live, because the service then asks
 * to confirm.
 */
export function startDeletion(conversation: Conversation, t: Localization["t"], onUndo: () => void): void {
  const id = conversation.conversation_id;
  if (conversation.live_turn_id !== null) return sendDeletion(conversation, t);
  const title = conversation.title || t("pages.untitled");
  const closeToast = toast(t("pages.delete.pending", { title }), {
    action: {
      label: t("pages.delete.undo"),
      run: () => {
        setPending(id, null);
        onUndo();
      },
    },
    then: () => sendDeletion(conversation, t),
  });
  setPending(id, closeToast);
}

/** The requests in flight. */
const sending = new Set<Promise<void>>();

/** Sends the deletions that wait for "Undo", and waits for the responses to all requests. */
export async function sendDeletions(): Promise<void> {
  for (const sendNow of useDeletion.getState().pending.values()) sendNow();
  await Promise.all(sending);
}

export function sendDeletion(conversation: Conversation, t: Localization["t"], token?: string): void {
  const sent = requestDeletion(conversation, t, token).finally(() => sending.delete(sent));
  sending.add(sent);
}

async function requestDeletion(conversation: Conversation, t: Localization["t"], token?: string): Promise<void> {
  const id = conversation.conversation_id;
  setPending(id, () => {});
  try {
    await api.DELETE("/conversations/{conversation_id}", {
      params: { path: { conversation_id: id }, header: token === undefined ? {} : { "X-Confirm": token } },
      keepalive: true,
    });
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    const { confirmation } = refusal;
    if (confirmation !== null) return useDeletion.setState({ serverConfirmation: { conversation, confirmation } });
    if (refusal.status !== 404) {
      noticeSignOut(refusal);
      setPending(id, null);
      toast(t("pages.delete.failed", { title: conversation.title || t("pages.untitled") }), {
        kind: "problem",
        action: { label: t("pages.retry"), run: () => sendDeletion(conversation, t) },
      });
      return;
    }
  }
  removeFromCache(id);
}

function removeFromCache(id: string): void {
  queryClient.setQueryData(conversationsQuery.queryKey, (list) =>
    list === undefined
      ? list
      : {
          ...list,
          pages: list.pages.map((page) => ({ ...page, data: page.data.filter((one) => one.conversation_id !== id) })),
        },
  );
  queryClient.removeQueries({ queryKey: ["conversation", id] });
  queryClient.removeQueries({ queryKey: ["messages", id] });
  setPending(id, null);
  void refetchInAllTabs("conversations");
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
