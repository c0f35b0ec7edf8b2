// The state of a conversation page: the conversation, its messages, the outgoing messages, and the followed turn.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useShallow } from "zustand/react/shallow";
import type { ConversationPage, Refusal } from "../../api/client";
import { useOutgoing, type Outgoing } from "../../api/outbox";
import { refetchInAllTabs, conversationQuery, messagesQuery } from "../../api/queries";
import type { Message, TurnID } from "../../generated/events";
import { forgetTurn, useLive, watchTurn } from "../../turn/live";
import { isFinal, rowsOf, type Row } from "./rows";

export interface ConversationState {
  page: ConversationPage | undefined;
  rows: readonly Row[];
  /** The live turn; after its end, until its final message is loaded. */
  turnID: string | null;
  /** Why nothing can be displayed; null: no failure. */
  refusal: Refusal | null;
  loading: boolean;
  /** Whether the conversation was deleted while it was displayed. */
  deleted: boolean;
  hasOlder: boolean;
  loadOlder(): void;
  again(): void;
}

/** The limit of restarts of following after the service reported an unknown turn or a stale position. */
const maxRestarts = 5;

/** isNew: the service does not have the conversation, so nothing is fetched. */
export function useConversation(id: string, isNew: boolean): ConversationState {
  const conversation = useQuery({ ...conversationQuery(id), enabled: !isNew });
  const page = conversation.data;
  const branch = page?.active_branch_id;
  const list = useInfiniteQuery({
    ...messagesQuery(id, branch ?? ""),
    enabled: !isNew && branch !== undefined,
    placeholderData: (before) => before,
  });
  const messages = useMemo(
    () => (list.data?.pages.toReversed().flatMap((part) => part.data) ?? []) as readonly Message[],
    [list.data],
  );
  const outgoing = useRetainedOutgoing(useOutgoing(id), messages);
  const turnID = turnOf(page, messages, outgoing);
  // A turn that started here is followed from its first event; any other one from the position of its message.
  const ready = list.isSuccess || outgoing.some((one) => one.turnID !== null);
  const followed = useFollowed(id, turnID, messages, ready);
  useCatchUp(
    id,
    page,
    conversation.dataUpdatedAt,
    messages,
    list.isSuccess && !list.isPlaceholderData && !list.isFetching,
  );
  const latest = useMemo(() => rowsOf(messages, outgoing, followed), [messages, outgoing, followed]);
  // Until the messages of another branch are loaded, the previous rows stay, so that nothing jumps.
  const shown = useRef(latest);
  if (!list.isPlaceholderData) shown.current = latest;
  const error = conversation.error ?? list.error;
  const nothing = page === undefined || (list.data === undefined && list.isError);
  return {
    page,
    rows: shown.current,
    turnID,
    refusal: nothing && outgoing.length === 0 ? (error as Refusal | null) : null,
    deleted: page !== undefined && (conversation.error as Refusal | null)?.status === 404,
    loading: nothing || list.data === undefined,
    hasOlder: list.hasNextPage,
    loadOlder: () => {
      if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
    },
    again: () => {
      void conversation.refetch();
      if (branch !== undefined) void list.refetch();
    },
  };
}

/** Retains accepted messages until their answers are loaded, even if the outbox has already removed them. */
function useRetainedOutgoing(outgoing: readonly Outgoing[], messages: readonly Message[]): readonly Outgoing[] {
  const retained = useRef<readonly Outgoing[]>([]);
  return useMemo(() => {
    const arrived = (turnID: string | null) =>
      messages.some((message) => message.role === "assistant" && message.turn_id === turnID);
    const kept = retained.current.filter((one) => !arrived(one.turnID) && outgoing.every(({ key }) => key !== one.key));
    const list = [...kept, ...outgoing].sort((a, b) => a.writtenAt - b.writtenAt);
    retained.current = list.filter((one) => one.state === "accepted" && one.turnID !== null);
    return list;
  }, [outgoing, messages]);
}

function turnOf(
  page: ConversationPage | undefined,
  messages: readonly Message[],
  outgoing: readonly Outgoing[],
): string | null {
  const started =
    outgoing.findLast(({ turnID }) => turnID !== null)?.turnID ??
    page?.live_turn?.turn_id ??
    messages.find((message) => message.status === "streaming")?.turn_id ??
    null;
  return started !== null &&
    messages.some((message) => message.turn_id === started && message.role === "assistant" && isFinal(message))
    ? null
    : started;
}

/** Follows the turn, and reloads the conversation when it ends. */
function useFollowed(id: string, turnID: string | null, messages: readonly Message[], ready: boolean) {
  const [attempt, setAttempt] = useState(0);
  const live = useLive(
    useShallow(({ byID: turns }) => {
      const turn = turnID === null ? undefined : turns[turnID];
      return turn === undefined
        ? null
        : {
            messageID: turn.view.messageID,
            userMessageID: turn.view.userMessageID,
            ended: turn.view.finished !== null || turn.connection === "ended",
            lost: turn.connection === "gone" || turn.connection === "stale",
          };
    }),
  );
  const message = useRef<Message | undefined>(undefined);
  message.current =
    turnID === null ? undefined : messages.find((one) => one.turn_id === turnID && one.status === "streaming");
  useEffect(() => {
    if (turnID === null || !ready) return;
    return watchTurn(turnID as TurnID, message.current);
  }, [turnID, ready, attempt]);
  const ended = live?.ended === true;
  useEffect(() => {
    if (turnID === null || !ended) return;
    void refetchInAllTabs("conversation", id);
    void refetchInAllTabs("messages", id);
    void refetchInAllTabs("conversations");
    // Once its message is loaded, the view of the turn is released.
    return () => forgetTurn(turnID);
  }, [id, turnID, ended]);
  const lost = live?.lost === true;
  useEffect(() => {
    if (turnID === null || !lost || attempt >= maxRestarts) return;
    let current = true;
    void Promise.all([refetchInAllTabs("conversation", id), refetchInAllTabs("messages", id)]).then(() => {
      if (!current) return;
      forgetTurn(turnID);
      setAttempt(attempt + 1);
    });
    return () => void (current = false);
  }, [id, turnID, lost, attempt]);
  const [messageID, userMessageID] = [live?.messageID ?? null, live?.userMessageID ?? null];
  return useMemo(
    () => (turnID === null ? null : { turnID, messageID, userMessageID }),
    [turnID, messageID, userMessageID],
  );
}

/** Reloads messages that do not match the conversation: another device wrote, or a queued message started. */
function useCatchUp(
  id: string,
  page: ConversationPage | undefined,
  updatedAt: number,
  messages: readonly Message[],
  settled: boolean,
): void {
  const newest = messages.at(-1);
  const behind = page !== undefined && page.head_message_id !== null && newest?.message_id !== page.head_message_id;
  const stuck = page !== undefined && page.live_turn_id === null && newest?.status === "streaming";
  const fetchedFor = useRef(0);
  useEffect(() => {
    if (!settled || !(behind || stuck) || fetchedFor.current === updatedAt) return;
    fetchedFor.current = updatedAt; // once for each response of the service
    void refetchInAllTabs("messages", id);
  }, [id, updatedAt, behind, stuck, settled]);
}
