// Error responses of the service: RFC 9457 problem documents. The app branches on status and code, never on the text.
import type { components } from "../generated/api";

export type Problem = components["schemas"]["Problem"];

/** What an irreversible request would delete, and the token that confirms it. */
export interface Confirmation {
  token: string;
  will_delete: Record<string, number>;
}

/** The error of a refused request, or of one that got no response (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly problem: Problem | null,
    /** Milliseconds until the request may be retried; 0 if the service did not set Retry-After. */
    readonly retryAfter: number,
    /** The number of sign-ins of this page before the request was sent; undefined: not known. */
    readonly signIns?: number,
  ) {
    super(`${status} ${code}`);
  }

  /** Whether it is unknown if the request took effect, so that it has to be repeated with the same key. */
  get outcomeUnknown(): boolean {
    return this.status === 0 || this.status >= 500;
  }

  /** The identifier of the live turn if the code is turn_in_progress, else null. */
  get liveTurn(): string | null {
    const current =
      this.code === "turn_in_progress" ? (this.problem?.current as { turn_id?: string } | null | undefined) : null;
    return current?.turn_id ?? null;
  }

  /** The confirmation that the service requires if the code is confirmation_required, else null. */
  get confirmation(): Confirmation | null {
    return this.code === "confirmation_required"
      ? (this.problem?.current as { confirmation: Confirmation }).confirmation
      : null;
  }
}

/** The number of sign-ins of this page before the request of a response was sent, by response. */
const signInsBefore = new WeakMap<Response, number>();

/** Notes the number of sign-ins before the request of a response was sent. Its Refusal contains the number. */
export function noteSignIns(response: Response, signIns: number): Response {
  signInsBefore.set(response, signIns);
  return response;
}

/** Reads the Refusal from an error response. */
export async function readRefusal(response: Response): Promise<Refusal> {
  const problem = await response
    .json()
    .then((body: Problem) => body)
    .catch(() => null);
  const { code = "unknown", detail = "" } = problem ?? {};
  return new Refusal(response.status, code, detail, problem, retryAfter(response), signInsBefore.get(response));
}

/** The value of Retry-After in milliseconds; 0 without the header. */
export function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("Retry-After"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}

/** The Refusal for a request without any response: the device is offline or the server is unreachable. */
export function unreachable(): Refusal {
  return new Refusal(0, "unreachable", "", null, 0);
}
