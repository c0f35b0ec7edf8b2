// What a conversation's room knows: the conversation, its messages, what is on its way, and the turn that is followed.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useShallow } from "zustand/react/shallow";
import type { ConversationPage, Refusal } from "../api/client";
import { useOutgoing, type Outgoing } from "../api/outbox";
import { changed, conversationQuery, messagesQuery } from "../api/queries";
import type { Message, TurnID } from "../generated/events";
import { forgetTurn, useLive, watchTurn } from "../turn/live";
import { isFinal, rowsOf, type Row } from "./rows";

export interface Room {
  page: ConversationPage | undefined;
  rows: readonly Row[];
  /** The turn that is live, or was until its message came. */
  turnID: string | null;
  /** Why nothing can be shown. */
  refusal: Refusal | null;
  loading: boolean;
  hasOlder: boolean;
  loadOlder(): void;
  again(): void;
}

/** How often following begins anew after the service said that there is no such turn, or that it is another one. */
const attempts = 5;

export function useConversation(id: string): Room {
  const conversation = useQuery(conversationQuery(id));
  const page = conversation.data;
  const branch = page?.active_branch_id;
  const list = useInfiniteQuery({ ...messagesQuery(id, branch ?? ""), enabled: branch !== undefined, placeholderData: (before) => before });
  const messages = useMemo(() => (list.data?.pages.toReversed().flatMap((part) => part.data) ?? []) as readonly Message[], [list.data]);
  const outgoing = useHeld(useOutgoing(id), messages);
  const turnID = turnOf(page, messages, outgoing);
  // A turn that began here is followed from its first event; another one from where its message is.
  const ready = list.isSuccess || outgoing.some((one) => one.turnID !== null);
  const followed = useFollowed(id, turnID, messages, ready);
  useCatchUp(id, page, conversation.dataUpdatedAt, messages, list.isSuccess && !list.isPlaceholderData && !list.isFetching);
  const fresh = useMemo(() => rowsOf(messages, outgoing, followed), [messages, outgoing, followed]);
  // Until the messages of another branch are there, what was shown stays: nothing jumps back for a moment.
  const shown = useRef(fresh);
  if (!list.isPlaceholderData) shown.current = fresh;
  const error = conversation.error ?? list.error;
  const nothing = page === undefined || (list.data === undefined && list.isError);
  return {
    page,
    rows: shown.current,
    turnID,
    refusal: nothing && outgoing.length === 0 ? (error as Refusal | null) : null,
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

/** What the service has accepted stays until its messages are here, whoever forgets it before. */
function useHeld(outgoing: readonly Outgoing[], messages: readonly Message[]): readonly Outgoing[] {
  const held = useRef<readonly Outgoing[]>([]);
  return useMemo(() => {
    const arrived = (turnID: string | null) => messages.some((message) => message.role === "assistant" && message.turn_id === turnID);
    const kept = held.current.filter((one) => !arrived(one.turnID) && outgoing.every(({ key }) => key !== one.key));
    const list = [...kept, ...outgoing].sort((a, b) => a.at - b.at);
    held.current = list.filter((one) => one.state === "accepted" && one.turnID !== null);
    return list;
  }, [outgoing, messages]);
}

function turnOf(page: ConversationPage | undefined, messages: readonly Message[], outgoing: readonly Outgoing[]): string | null {
  const begun = outgoing.findLast(({ turnID }) => turnID !== null)?.turnID ?? page?.live_turn?.turn_id ?? messages.find((message) => message.status === "streaming")?.turn_id ?? null;
  return begun !== null && messages.some((message) => message.turn_id === begun && message.role === "assistant" && isFinal(message)) ? null : begun;
}

/** Follows the turn, and loads what it became when it ends. */
function useFollowed(id: string, turnID: string | null, messages: readonly Message[], ready: boolean) {
  const [attempt, setAttempt] = useState(0);
  const live = useLive(
    useShallow(({ turns }) => {
      const turn = turnID === null ? undefined : turns[turnID];
      return turn === undefined ? null : { messageID: turn.view.messageID, userMessageID: turn.view.userMessageID, ended: turn.view.finished !== null || turn.link === "ended", lost: turn.link === "gone" || turn.link === "stale" };
    }),
  );
  const message = useRef<Message | undefined>(undefined);
  message.current = turnID === null ? undefined : messages.find((one) => one.turn_id === turnID && one.status === "streaming");
  useEffect(() => {
    if (turnID === null || !ready) return;
    return watchTurn(turnID as TurnID, message.current);
  }, [turnID, ready, attempt]);
  const ended = live?.ended === true;
  useEffect(() => {
    if (turnID === null || !ended) return;
    void changed("conversation", id);
    void changed("messages", id);
    void changed("conversations");
    // Once its message is here, the view of the turn is let go.
    return () => forgetTurn(turnID);
  }, [id, turnID, ended]);
  const lost = live?.lost === true;
  useEffect(() => {
    if (turnID === null || !lost || attempt >= attempts) return;
    let current = true;
    void Promise.all([changed("conversation", id), changed("messages", id)]).then(() => {
      if (!current) return;
      forgetTurn(turnID);
      setAttempt(attempt + 1);
    });
    return () => void (current = false);
  }, [id, turnID, lost, attempt]);
  const [messageID, userMessageID] = [live?.messageID ?? null, live?.userMessageID ?? null];
  return useMemo(() => (turnID === null ? null : { turnID, messageID, userMessageID }), [turnID, messageID, userMessageID]);
}

/** Loads messages again when the conversation tells of others: another device wrote, or a queued message has begun. */
function useCatchUp(id: string, page: ConversationPage | undefined, told: number, messages: readonly Message[], settled: boolean): void {
  const newest = messages.at(-1);
  const behind = page !== undefined && page.head_message_id !== null && newest?.message_id !== page.head_message_id;
  const stuck = page !== undefined && page.live_turn_id === null && newest?.status === "streaming";
  const asked = useRef(0);
  useEffect(() => {
    if (!settled || !(behind || stuck) || asked.current === told) return;
    asked.current = told; // once for each answer of the service
    void changed("messages", id);
  }, [id, told, behind, stuck, settled]);
}
