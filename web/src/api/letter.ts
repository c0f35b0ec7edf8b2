// A message or a steering input on its way to the service: what of it is kept until it was answered, the request that it
// makes, and what follows from a refusal. Pure; delivery.ts does what is said here.
import type { Schemas } from "./client";
import type { Refusal } from "./problem";

export type Profile = "auto" | "balanced" | "deep_reasoning" | "coding";
/** What a message does while an answer is being written. */
export type Busy = "reject" | "queue" | "steer" | "interrupt";

export interface Trouble {
  /** 0: no answer came. */
  status: number;
  code: string;
  detail: string;
  fields: readonly { field: string; message: string }[];
  /** Of a 503: the parts of the service that it says are down. */
  down: readonly string[];
  /** When it may be tried again, in milliseconds since 1970; 0: nobody said. */
  until: number;
  /** Of turn_in_progress: the live turn that the service named; null: none. */
  turn: string | null;
}

/** What a person wants said. */
export interface Sending {
  conversationID: string;
  text: string;
  /** reject: refused while a turn is live, and the user is asked. */
  busy: Busy;
  branch?: Schemas["BranchRequest"];
  profile?: Profile;
  /** Of steer and interrupt, and only of those: the turn that is meant. */
  turn?: string;
  /** The head that the writer saw; absent: not checked. */
  head?: string | null;
  /** The conversation does not exist yet; it is made with this profile. */
  fresh?: { profile: Profile | null };
}

/** With a turn it is an input for that one; without, a message, which begins a turn or waits for one. */
export interface Letter extends Sending {
  /** Names it: the Idempotency-Key of a message, the client_steering_id of an input. */
  key: string;
  /** Whose it is. It is never sent for another account. */
  account: string;
  /** The body of the request, byte for byte the same at every repeat. */
  body: string;
  /** When it was written; letters of a lane go in this order. */
  at: number;
  /** When its request was first under way; the service knows its key for a day from then. */
  tried: number | null;
  /** Sent by itself when a limit is over. */
  patient: boolean;
  state: "sending" | "waiting" | "refused" | "accepted";
  trouble: Trouble | null;
  /** Of an accepted message: the turn that it began, if it did. */
  began: string | null;
  /** Of an accepted message: the follow-up that it became, if it waits for its turn. */
  parked: string | null;
}

/** What goes one after the other: the messages of a conversation; and beside them its inputs, which overtake. */
export function laneOf(letter: Pick<Letter, "account" | "conversationID" | "turn">): string {
  return `${letter.account}/${letter.conversationID}/${letter.turn === undefined ? "chat" : "steering"}`;
}

/** The path and the body of what is asked for. */
export function bodyOf(letter: Omit<Letter, "body">): string {
  const input = letter.text === "" ? [] : [{ type: "text", text: letter.text }];
  if (letter.turn !== undefined) {
    const steering = { type: "input", turn_id: letter.turn, client_steering_id: letter.key, input, delivery: letter.busy === "interrupt" ? "interrupt" : "next_step" };
    return JSON.stringify(steering);
  }
  return JSON.stringify({
    conversation_id: letter.conversationID,
    input,
    if_busy: letter.busy === "queue" ? "queue" : "reject",
    ...(letter.branch === undefined ? {} : { branch: letter.branch }),
    ...(letter.profile === undefined ? {} : { profile: letter.profile }),
    ...(letter.head === undefined ? {} : { expected_head_message_id: letter.head }),
  });
}

/** What the service itself says of a trouble: what is wrong with each field, else the whole. */
export function saidOf({ fields, detail }: Pick<Trouble, "fields" | "detail">): string {
  return fields.map((one) => one.message).join(" ") || detail;
}

/** What is done after a refusal: the same request again, after a while, or nothing until the user decides. */
export type Verdict = { again: true; wait: number } | { again: false };

const firstPause = 500;
const longestPause = 30_000;
/** The service forgets a key after 24 hours; the hour between is for clocks and slow requests. */
const keyLife = 23 * 3_600_000;

/** dice: a number from 0 to 1, so that devices do not come back all at once. */
export function judge(letter: Letter, refusal: Refusal, failures: number, dice: number): Verdict {
  const wait = Math.max(refusal.retryAfter, Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + dice / 2));
  if (refusal.unanswered || refusal.status === 408) return { again: true, wait };
  // Nothing to be done but to sign in; that ends the pause.
  if (refusal.status === 401) return { again: true, wait: Infinity };
  if (refusal.code === "idempotency_in_progress") return { again: true, wait };
  if (refusal.code === "rate_limited" && letter.patient) return { again: true, wait };
  return { again: false };
}

/** Whether a repeat could be taken for a new message: its first try, whose end nobody knows, is too long ago. */
export function outlivedItsKey(letter: Letter, now: number): boolean {
  return letter.tried !== null && now - letter.tried > keyLife;
}

/** How long a letter has still to wait for a limit, in milliseconds; a page that was loaded meanwhile waits for it too. */
export function restOf(letter: Letter, now: number): number {
  return letter.state === "waiting" && letter.trouble?.status === 429 ? letter.trouble.until - now : 0;
}

export function troubleOf(refusal: Refusal, now: number, wait = refusal.retryAfter, down: readonly string[] = []): Trouble {
  const until = wait > 0 && Number.isFinite(wait) ? now + wait : 0;
  return { status: refusal.status, code: refusal.code, detail: refusal.detail, fields: refusal.problem?.errors ?? [], down, until, turn: refusal.liveTurn };
}
