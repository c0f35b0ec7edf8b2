// The state of a conversation that the composer depends on: the live turn, what it accepts, and messages in flight. It
// does not depend on the text of an answer.
import { useMemo } from "react";
import type { ConversationPage } from "../../api/client";
import { useOutbox } from "../../api/outbox";
import { awaitsApproval, hasEnded } from "../../turn/fold";
import { useLive, type LiveTurn } from "../../turn/live";
import { useSteeringRequests } from "./steering-requests";

export interface ComposerState {
  /** The live turn; null: none. */
  turn: string | null;
  acceptsSteering: boolean;
  /** Whether a stop was requested, here or elsewhere, and the turn has not ended yet. */
  stopping: boolean;
  /** Whether the turn waits for the user's approval of a tool call. */
  waits: boolean;
  /** Whether a message is in flight or was just accepted; a message sent now comes after it. */
  messageInFlight: boolean;
  /** The assistant message of the displayed turn, which is live or has just ended. */
  answerMessageID: string | null;
}

export function useComposerState(id: string, page: ConversationPage | undefined, live: LiveTurn | null): ComposerState {
  const messageInFlight = useOutbox(({ list }) =>
    list.some(
      (message) => message.conversationID === id && message.targetTurn === undefined && message.state !== "refused",
    ),
  );
  const view = live?.view ?? null;
  const ended = view !== null && (view.finished !== null || hasEnded(view.state));
  const known = page?.live_turn ?? null;
  const turn =
    view !== null && !ended ? view.turnID : known !== null && known.turn_id !== view?.turnID ? known.turn_id : null;
  const requested = useSteeringRequests(({ byID }) => turn !== null && byID[turn] !== undefined);
  const current = turn !== null && view?.turnID === turn ? view : null;
  const acceptsSteering = turn !== null && (current?.acceptingSteering ?? known?.accepting_steering ?? false);
  const stopping =
    turn !== null &&
    (requested || current?.cancelRequested === true || (current?.state ?? known?.state) === "cancelling");
  const waits = turn !== null && (current === null ? known?.state === "requires_action" : awaitsApproval(current));
  const answerMessageID = view?.messageID ?? null;
  // The same object as long as no value changes, because a live turn changes with every frame.
  return useMemo(
    () => ({ turn, acceptsSteering, stopping, waits, messageInFlight, answerMessageID }),
    [turn, acceptsSteering, stopping, waits, messageInFlight, answerMessageID],
  );
}

/** The sequence of the last event of a turn that this page has received. */
export function lastReceivedSequence(turn: string, page: ConversationPage | undefined): number {
  return useLive.getState().byID[turn]?.view.last ?? page?.live_turn?.last_sequence ?? 0;
}
