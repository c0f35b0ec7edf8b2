// How things stand in a conversation for one who writes: which turn is live, what it takes, what is on its way. Never
// told by the text of an answer.
import { useMemo } from "react";
import type { ConversationPage } from "../api/client";
import { useLetters } from "../api/outbox";
import { hasEnded } from "../turn/fold";
import { useLive, type LiveTurn } from "../turn/live";
import { useAsked } from "./stop";

export interface Standing {
  /** The live turn; null: none. */
  turn: string | null;
  acceptsSteering: boolean;
  /** It was asked to stop, here or elsewhere, and has not ended yet. */
  stopping: boolean;
  /** A message is on its way, or has just arrived: what is sent now comes after it. */
  underWay: boolean;
  /** The message that the turn that is shown writes, live or just ended. */
  answer: string | null;
}

export function useStanding(id: string, page: ConversationPage | undefined, live: LiveTurn | null): Standing {
  const underWay = useLetters(({ list }) => list.some((letter) => letter.conversationID === id && letter.turn === undefined && letter.state !== "refused"));
  const view = live?.view ?? null;
  const ended = view !== null && (view.finished !== null || hasEnded(view.state));
  const told = page?.live_turn ?? null;
  const turn = view !== null && !ended ? view.turnID : told !== null && told.turn_id !== view?.turnID ? told.turn_id : null;
  const asked = useAsked(({ byID }) => turn !== null && byID[turn] !== undefined);
  const current = turn !== null && view?.turnID === turn ? view : null;
  const acceptsSteering = turn !== null && (current?.acceptingSteering ?? told?.accepting_steering ?? false);
  const stopping = turn !== null && (asked || current?.cancelRequested === true || (current?.state ?? told?.state) === "cancelling");
  const answer = view?.messageID ?? null;
  // The same as long as nothing of it changes: a turn changes with every frame.
  return useMemo(() => ({ turn, acceptsSteering, stopping, underWay, answer }), [turn, acceptsSteering, stopping, underWay, answer]);
}

/** The last event of a turn that was seen here. */
export function lastSeen(turn: string, page: ConversationPage | undefined): number {
  return useLive.getState().turns[turn]?.view.last ?? page?.live_turn?.last_sequence ?? 0;
}
