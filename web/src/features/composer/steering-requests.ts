// Stops turns, and withdraws steering inputs or applies them at once: repeats each request until the service responds.
import { create } from "zustand";
import type { Refusal, Schemas } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { postSteering } from "../../api/steering";

type Steering = Omit<Schemas["SteeringRequest"], "turn_id">;

export interface SteeringRequest {
  type: Steering["type"];
  /** sending: no response yet. done: the service has responded, and the request is not repeated. */
  state: "sending" | "done";
  /** Why the last attempt failed; null: no failure. */
  refusal: Refusal | null;
}

/** The requests by identifier: of the turn for a stop, of the steering input for the other requests. */
export const useSteeringRequests = create<{ byID: Readonly<Record<string, SteeringRequest>> }>(() => ({ byID: {} }));

/** Requests the stop of a turn, with or without its queued follow-ups. It has stopped when its end is reported. */
export function stopTurn(
  conversation: string,
  turn: string,
  seen: number,
  scope: NonNullable<Steering["scope"]>,
): void {
  void sendUntilResponse(turn, turn, { type: "cancel", seen_sequence: seen, scope }).then(() =>
    refetchInAllTabs("conversation", conversation),
  );
}

/** Withdraws a pending steering input, or interrupts the answer and applies it at once. */
export function decideSteering(turn: string, steering: string, type: "withdraw" | "apply_now"): void {
  void sendUntilResponse(steering, turn, { type, steering_id: steering });
}

async function sendUntilResponse(id: string, turn: string, steering: Steering): Promise<void> {
  const before = useSteeringRequests.getState().byID[id];
  // A second press requests the same, unless it also cancels the queued follow-ups.
  if (before?.state === "sending" && steering.scope !== "turn_and_follow_ups") return;
  const update = (request: Omit<SteeringRequest, "type">) =>
    useSteeringRequests.setState(({ byID }) => ({ byID: { ...byID, [id]: { ...request, type: steering.type } } }));
  update({ state: "sending", refusal: null });
  // A refusal means that the turn has ended or that the input was applied or returned.
  await postSteering({ ...steering, turn_id: turn }, (refusal) => update({ state: "sending", refusal }));
  update({ state: "done", refusal: null });
}
