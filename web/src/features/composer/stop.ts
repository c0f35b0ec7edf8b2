// Stops turns, and withdraws steering inputs or applies them at once: repeats each request until the service responds.
import { create } from "zustand";
import { Refusal, send, type Schemas } from "../../api/client";
import { noticeSignOut, useSessionState } from "../../api/session-state";
import { readRefusal } from "../../api/problem";
import { refetchInAllTabs } from "../../api/queries";

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

/** The longest pause between attempts without Retry-After, in milliseconds. */
const longestPause = 8_000;

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
  for (let failures = 0; ; failures++) {
    try {
      const init = {
        method: "POST",
        keepalive: true,
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...steering, turn_id: turn }),
        signal: AbortSignal.timeout(10_000),
      };
      const response = await send(new Request(new URL("/chat/steering", location.origin), init));
      if (!response.ok) throw await readRefusal(response);
      return update({ state: "done", refusal: null });
    } catch (error) {
      noticeSignOut(error);
      const refusal = error instanceof Refusal ? error : new Refusal(0, "unreachable", "", null, 0);
      const again = refusal.outcomeUnknown || refusal.status === 401 || refusal.status === 429;
      // Any other refusal means that the turn has ended or that the input was applied or returned.
      if (!again) return update({ state: "done", refusal: null });
      update({ state: "sending", refusal });
      await pause(
        refusal.status === 401
          ? longestPause
          : Math.max(refusal.retryAfter, Math.min(longestPause, 300 * 2 ** failures) * (0.5 + Math.random() / 2)),
      );
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      stopWatching();
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end);
    const stopWatching = useSessionState.subscribe(({ lost }, before) => before.lost && !lost && end());
  });
}
