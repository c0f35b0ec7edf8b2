// What the service says when it refuses: RFC 9457 documents. The app branches on status and code, never on words.
import type { components } from "../generated/api";

export type Problem = components["schemas"]["Problem"];

/** A refused request, or one that got no answer (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly problem: Problem | null,
    /** Milliseconds until it may be tried again; 0 when nobody said. */
    readonly retryAfter: number,
  ) {
    super(`${status} ${code}`);
  }

  /** Whether nobody knows if the request took effect, so that it has to be repeated with its key. */
  get unanswered(): boolean {
    return this.status === 0 || this.status >= 500;
  }

  /** Of turn_in_progress: the turn that is live; else null. */
  get liveTurn(): string | null {
    const current = this.code === "turn_in_progress" ? (this.problem?.current as { turn_id?: string } | null | undefined) : null;
    return current?.turn_id ?? null;
  }
}

/** What an answer refuses with. */
export async function problemOf(answer: Response): Promise<Refusal> {
  const problem = await answer
    .json()
    .then((body: Problem) => body)
    .catch(() => null);
  return new Refusal(answer.status, problem?.code ?? "unknown", problem?.detail ?? "", problem, retryAfter(answer));
}

/** Milliseconds that Retry-After asks for; 0 without one. */
export function retryAfter(answer: Response): number {
  const seconds = Number(answer.headers.get("Retry-After"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}

/** No answer at all: offline, or the server is away. */
export function unreachable(): Refusal {
  return new Refusal(0, "unreachable", "", null, 0);
}
