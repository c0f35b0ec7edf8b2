// Deleting a conversation. It cannot be undone once the service has done it, so the user is asked, and then the request
// waits a few seconds for "Undo"; it is sent at once when the page is left. The row stays, marked, until it has happened.
import { useEffect } from "react";
import { create } from "zustand";
import { notice } from "../api/access";
import { api, type Conversation, Refusal } from "../api/client";
import { changed, conversationsQuery, queryClient } from "../api/queries";
import { toast } from "../controls/toast";
import type { Speech } from "../words/speech";

interface Confirmation {
  token: string;
  will_delete: Record<string, number>;
}

interface Deletion {
  /** Asked about, before anything is sent. */
  asked: Conversation | null;
  /** The service asks: an answer is being written there. */
  confirm: { conversation: Conversation; confirmation: Confirmation } | null;
  /** On their way, by id, each with how to stop waiting and send. */
  leaving: ReadonlyMap<string, () => void>;
}

export const useDeletion = create<Deletion>(() => ({ asked: null, confirm: null, leaving: new Map() }));

export const askToDelete = (conversation: Conversation): void => useDeletion.setState({ asked: conversation });

export function mark(id: string, sendNow: (() => void) | null): void {
  useDeletion.setState(({ leaving }) => {
    const next = new Map(leaving);
    if (sendNow === null) next.delete(id);
    else next.set(id, sendNow);
    return { leaving: next };
  });
}

/** Waits for "Undo", then sends. A conversation with live work is sent at once: the service asks again about that. */
export function begin(conversation: Conversation, say: Speech["say"]): void {
  const id = conversation.conversation_id;
  if (conversation.live_turn_id !== null) return send(conversation, say);
  const title = conversation.title || say("rooms.untitled");
  const putAway = toast(say("rooms.delete.leaving", { title }), { action: { label: say("rooms.delete.undo"), run: () => mark(id, null) }, then: () => send(conversation, say) });
  mark(id, putAway);
}

/** What is being sent. */
const sending = new Set<Promise<void>>();

/** Sends what still waits for "Undo", and waits until all is answered. */
export async function sendDeletions(): Promise<void> {
  for (const sendNow of useDeletion.getState().leaving.values()) sendNow();
  await Promise.all(sending);
}

export function send(conversation: Conversation, say: Speech["say"], token?: string): void {
  const sent = ask(conversation, say, token).finally(() => sending.delete(sent));
  sending.add(sent);
}

async function ask(conversation: Conversation, say: Speech["say"], token?: string): Promise<void> {
  const id = conversation.conversation_id;
  mark(id, () => {});
  try {
    await api.DELETE("/conversations/{conversation_id}", { params: { path: { conversation_id: id }, header: token === undefined ? {} : { "X-Confirm": token } }, keepalive: true });
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    if (refusal.code === "confirmation_required") {
      const { confirmation } = refusal.problem?.current as { confirmation: Confirmation };
      useDeletion.setState({ confirm: { conversation, confirmation } });
      return;
    }
    if (refusal.status !== 404) {
      notice(refusal);
      mark(id, null);
      toast(say("rooms.delete.failed", { title: conversation.title || say("rooms.untitled") }), { kind: "problem", action: { label: say("rooms.again"), run: () => send(conversation, say) } });
      return;
    }
  }
  forget(id);
}

function forget(id: string): void {
  queryClient.setQueryData(conversationsQuery.queryKey, (list) =>
    list === undefined ? list : { ...list, pages: list.pages.map((page) => ({ ...page, data: page.data.filter((one) => one.conversation_id !== id) })) },
  );
  queryClient.removeQueries({ queryKey: ["conversation", id] });
  queryClient.removeQueries({ queryKey: ["messages", id] });
  mark(id, null);
  void changed("conversations");
}

/** Nobody can press "Undo" on a page that is not seen. */
export function useSendWhenHidden(): void {
  useEffect(() => {
    const look = () => {
      if (document.hidden) void sendDeletions();
    };
    const leave = () => void sendDeletions();
    document.addEventListener("visibilitychange", look);
    window.addEventListener("pagehide", leave);
    return () => {
      document.removeEventListener("visibilitychange", look);
      window.removeEventListener("pagehide", leave);
    };
  }, []);
}
