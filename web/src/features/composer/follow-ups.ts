// Changes to the follow-ups of a conversation. Only a new order is shown before the service has confirmed it.
import { create } from "zustand";
import { api, body, Refusal, type ConversationPage, type FollowUp } from "../../api/client";
import { onMessageSettled, sendMessage } from "../../api/outbox";
import { noticeSignOut } from "../../api/session-state";
import { cacheFollowUp, cacheOrder, inOrder, refetchInAllTabs } from "../../api/queries";
import { toast } from "../../controls/toast";
import type { SendMode } from "../../keys/send-modes";

import { focusToWrite } from "./composer-requests";
import { drafts } from "./page-drafts";
import type { WritingMessageKey } from "../../messages/writing";
import type { Translate } from "../../messages/catalog";

/**
 * Sets the state of a follow-up, and its text if one is given, if its version is unchanged. Returns false, and shows
 * why, if that failed; where a text is written, its editor shows the change of another device.
 */
export async function changeFollowUp(
  conversation: string,
  item: FollowUp,
  state: "queued" | "held" | "cancelled",
  t: Translate<WritingMessageKey>,
  content?: string,
): Promise<boolean> {
  const path = { conversation_id: conversation, follow_up_id: item.follow_up_id };
  try {
    const changed = await body(
      api.PATCH("/conversations/{conversation_id}/follow-ups/{follow_up_id}", {
        params: { path },
        body: { state, version: item.version, ...(content === undefined ? {} : { content }) },
      }),
    );
    if (state !== "cancelled") cacheFollowUp(conversation, changed); // a cancelled one is not listed any more
    return true;
  } catch (error) {
    noticeSignOut(error);
    // 409 and 404: it was changed or started elsewhere in the meantime; the current state is refetched below.
    const elsewhere = error instanceof Refusal && (error.status === 409 || error.status === 404);
    if (!elsewhere || content === undefined)
      toast(t(elsewhere ? "composer.pending.changed" : "composer.pending.failed"), { kind: "problem" });
    return false;
  } finally {
    void refetchInAllTabs("conversation", conversation);
  }
}

/** Cancels a follow-up and offers to bring it back: to the end of the queue, or to the composer if it was on hold. */
export async function discardFollowUp(
  conversation: string,
  item: FollowUp,
  t: Translate<WritingMessageKey>,
): Promise<boolean> {
  if (!(await changeFollowUp(conversation, item, "cancelled", t))) return false;
  const { content: text, profile, tools } = item;
  const undo = () => {
    if (item.state === "queued")
      sendMessage({
        conversationID: conversation,
        text,
        ifBusy: "queue",
        ...(profile === null ? {} : { profile }),
        ...(tools === null ? {} : { tools }),
      });
    else drafts.restoreText(conversation, text);
    focusToWrite();
  };
  toast(t("composer.pending.discarded"), { action: { label: t("composer.pending.undo"), run: undo } });
  return true;
}

/** Returns the identifiers of a queue in the order after an item was moved to the place of another one. */
export function moved(ids: readonly string[], item: string, target: string): string[] {
  const to = ids.indexOf(target);
  if (to < 0 || !ids.includes(item)) return [...ids];
  return ids.filter((id) => id !== item).toSpliced(to, 0, item);
}

/** The orders that are displayed while the service stores them, by conversation. */
const useMoves = create<Record<string, readonly string[]>>(() => ({}));

/** The last move in each queue that the service has not answered. It gives the version of the queue; null: it failed. */
const moves = new Map<string, Promise<number | null>>();

/** Returns the follow-ups of a conversation in the order to display. */
export function useFollowUps(page: ConversationPage | undefined): readonly FollowUp[] {
  const order = useMoves((all) => (page === undefined ? undefined : all[page.conversation_id]));
  const followUps = page?.follow_ups ?? none;
  return order === undefined ? followUps : inOrder(followUps, order);
}

const none: readonly FollowUp[] = [];

/**
 * Moves a follow-up to the place of another one. The new order is displayed at once. If another device has changed the
 * queue in the meantime, its order is displayed instead. Moves in succession are stored one after the other; those that
 * follow a failed one are not.
 */
export async function moveFollowUp(
  page: ConversationPage,
  item: string,
  target: string,
  t: Translate<WritingMessageKey>,
): Promise<void> {
  const id = page.conversation_id;
  const shown = inOrder(page.follow_ups, useMoves.getState()[id] ?? []);
  const order = moved(
    shown.map((one) => one.follow_up_id),
    item,
    target,
  );
  useMoves.setState({ [id]: order });
  const earlier = moves.get(id);
  const move = (async () => {
    const version = earlier === undefined ? page.queue_version : await earlier;
    return version === null ? null : storeOrder(id, order, version, t);
  })();
  moves.set(id, move);
  await move;
  if (moves.get(id) !== move) return; // a later move is displayed
  moves.delete(id);
  useMoves.setState(({ [id]: _, ...others }) => others, true);
  await refetchInAllTabs("conversation", id);
}

/** Stores an order. Returns the new version of the queue; null, and shows why, if that failed. */
async function storeOrder(
  id: string,
  order: string[],
  version: number,
  t: Translate<WritingMessageKey>,
): Promise<number | null> {
  try {
    const { queue_version } = await body(
      api.PUT("/conversations/{conversation_id}/follow-ups/order", {
        params: { path: { conversation_id: id } },
        body: { order, queue_version: version },
      }),
    );
    cacheOrder(id, order, queue_version);
    return queue_version;
  } catch (error) {
    noticeSignOut(error);
    const elsewhere = error instanceof Refusal && (error.status === 409 || error.status === 404);
    toast(t(elsewhere ? "composer.pending.reordered" : "composer.pending.failed"), { kind: "problem" });
    return null;
  }
}

/** Queues held follow-ups in their order. Stops at the first that cannot be queued. */
export async function sendHeld(
  conversation: string,
  items: readonly FollowUp[],
  t: Translate<WritingMessageKey>,
): Promise<void> {
  for (const item of items) if (!(await changeFollowUp(conversation, item, "queued", t))) return;
}

/** Steers a live turn with a queued follow-up, which is cancelled. The outbox has the text until it is accepted. */
export function steerWith(
  conversation: string,
  turn: string,
  as: SendMode,
  item: FollowUp,
  t: Translate<WritingMessageKey>,
): void {
  const { follow_up_id: followUpID, version, content: text } = item;
  const replaces = { followUpID, version, cancelled: false };
  const key = sendMessage({ conversationID: conversation, text, ifBusy: as, targetTurn: turn, replaces });
  const stop = onMessageSettled((message, end) => {
    if (message.key !== key) return;
    stop();
    if (end !== "dropped") return;
    toast(t("composer.pending.changed"), { kind: "problem" });
    void refetchInAllTabs("conversation", conversation);
  });
}
