// Stopping a turn and taking a steering input back: asked for until the service has answered, from whatever tab.
import { create } from "zustand";
import { Refusal, send, type Schemas } from "../api/client";
import { notice, useAccess } from "../api/access";
import { problemOf } from "../api/problem";
import { changed } from "../api/queries";

type Steering = Omit<Schemas["SteeringRequest"], "turn_id">;

export interface Asked {
  /** asking: not answered yet. heard: the service has it. */
  state: "asking" | "heard";
  /** Why it is still asked for; null while it goes well. */
  refusal: Refusal | null;
}

/** By turn for a stop, by steering input for one that is taken back. */
export const useAsked = create<{ byID: Readonly<Record<string, Asked>> }>(() => ({ byID: {} }));

const longest = 8_000;

/** Stops a turn; the queue stays as it is, or is cleared with it. The turn has stopped only when its end is told. */
export function stopTurn(conversation: string, turn: string, seen: number, scope: NonNullable<Steering["scope"]>): void {
  void ask(turn, turn, { type: "cancel", seen_sequence: seen, scope }).then(() => changed("conversation", conversation));
}

export function withdraw(turn: string, steering: string): void {
  void ask(steering, turn, { type: "withdraw", steering_id: steering });
}

async function ask(id: string, turn: string, steering: Steering): Promise<void> {
  const before = useAsked.getState().byID[id];
  // Whoever presses again wants the same, except one who now wants the queue cleared too.
  if (before?.state === "asking" && steering.scope !== "turn_and_follow_ups") return;
  const note = (asked: Asked) => useAsked.setState(({ byID }) => ({ byID: { ...byID, [id]: asked } }));
  note({ state: "asking", refusal: null });
  for (let failures = 0; ; failures++) {
    try {
      const init = { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...steering, turn_id: turn }), signal: AbortSignal.timeout(10_000) };
      const answer = await send(new Request(new URL("/chat/steering", location.origin), init));
      if (!answer.ok) throw await problemOf(answer);
      return note({ state: "heard", refusal: null });
    } catch (error) {
      notice(error);
      const refusal = error instanceof Refusal ? error : new Refusal(0, "unreachable", "", null, 0);
      const again = refusal.unanswered || refusal.status === 401 || refusal.status === 429;
      // The turn, or the input, has come to its end by itself.
      if (!again) return note({ state: "heard", refusal: null });
      note({ state: "asking", refusal });
      await pause(refusal.status === 401 ? longest : Math.max(refusal.retryAfter, Math.min(longest, 300 * 2 ** failures) * (0.5 + Math.random() / 2)));
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
    const stopWatching = useAccess.subscribe(({ lost }, before) => before.lost && !lost && end());
  });
}
