// Which conversations the user deletes. The service cannot undo it, so the user confirms it, and then the requests wait a few
// seconds for "Undo"; they are sent at once if the page is hidden or left. A row is marked and stays until the service has
// deleted its conversation. deletion-requests.ts sends the requests.
import { useEffect } from "react";
import { create } from "zustand";
import type { Conversation } from "../../api/client";
import type { Confirmation } from "../../api/problem";
import { onLeaving } from "../../api/session-state";
import { TabLocks } from "../../api/tab-locks";

export interface ServerConfirmation {
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

/** Marks deletions as pending, with the function that sends them now; null: they are not pending. */
export function setPending(conversations: readonly Conversation[], sendNow: (() => void) | null): void {
  useDeletion.setState(({ pending }) => {
    const next = new Map(pending);
    for (const { conversation_id } of conversations)
      if (sendNow === null) next.delete(conversation_id);
      else next.set(conversation_id, sendNow);
    return { pending: next };
  });
}

/** The requests in flight; each results in how many conversations were not deleted because of a refusal. */
export const sending = new Set<Promise<number>>();

/** Sends the deletions that wait for "Undo" or for others. */
function sendDeletions(): void {
  for (const sendNow of new Set(useDeletion.getState().pending.values())) sendNow();
}

/**
 * Sends all pending deletions, and waits for the responses until a time in milliseconds is over. Returns how many conversations are
 * not deleted.
 */
export async function awaitDeletions(limit: number): Promise<number> {
  sendDeletions();
  const over = new Promise<number[]>((resolve) => setTimeout(resolve, limit, []));
  const refused = await Promise.race([Promise.all(sending), over]);
  return refused.reduce((sum, count) => sum + count, useDeletion.getState().pending.size);
}

/** Of the conversations that are being deleted, so that a sign-out in another tab waits for them. */
export const deletionLocks = new TabLocks("deletion");

/**
 * Sends the pending deletions when the page is hidden or left, because "Undo" cannot be pressed then, and when the user signs out in
 * another tab, because they cannot be sent afterwards.
 */
export function useSendWhenLeft(): void {
  useEffect(() => {
    const onVisibilityChange = () => {
      if (document.hidden) sendDeletions();
    };
    document.addEventListener("visibilitychange", onVisibilityChange);
    window.addEventListener("pagehide", sendDeletions);
    const stops = [
      onLeaving(sendDeletions),
      useDeletion.subscribe(({ pending }) => deletionLocks.hold(new Set(pending.keys()))),
    ];
    return () => {
      document.removeEventListener("visibilitychange", onVisibilityChange);
      window.removeEventListener("pagehide", sendDeletions);
      stops.forEach((stop) => stop());
    };
  }, []);
}
