// The live turns of this tab.
import type { Message, TurnEvent, TurnID } from "../generated/events";
import { foldTurn, openTurn, type TurnView } from "./fold";
import { liveStore, type LiveView } from "./live-store";

export type LiveTurn = LiveView<TurnView>;

const turns = liveStore<TurnView, TurnEvent>(foldTurn);

export const useLive = turns.use;

/** Follows a turn while a component shows it, starting at its streaming message. Returns a function that stops. */
export const watchTurn = (turn: TurnID, message: Message | undefined): (() => void) =>
  turns.watch(turn, () => openTurn(turn, message));

/** Removes a turn that has ended and is among the conversation's messages. */
export const forgetTurn = turns.forget;
