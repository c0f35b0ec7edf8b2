// An outbox message (a chat message or a steering input): the data stored until the service accepts it, its request,
// and the decision after a refusal. Pure functions; delivery.ts executes the decisions.
import type { Attachment } from "./attachments";
import type { Schemas } from "./client";
import type { Refusal } from "./problem";
import { withoutTools, type ToolChoice } from "./tool-choice";

export type Profile = "auto" | "balanced" | "deep_reasoning" | "coding";
/** What happens to a message that is sent during a live turn. */
export type BusyAction = "reject" | "queue" | "steer" | "interrupt";

export interface DeliveryFailure {
  /** The HTTP status; 0: no response. */
  status: number;
  code: string;
  detail: string;
  fields: readonly { field: string; message: string }[];
  /** After a 503: the parts of the service that are down. */
  downParts: readonly string[];
  /** When the message may be sent again, in milliseconds since 1970; 0: not known. */
  retryAt: number;
  /** After turn_in_progress: the live turn that the service named; null: none. */
  liveTurn: string | null;
}

/** How a conversation is created that the service does not have yet. */
export interface NewConversation {
  profile: Profile | null;
  /** Absent: it is not temporary. */
  temporary?: boolean;
  /** The project into which it is put once it exists; absent: none. */
  project?: string;
}

/** Returns the body of the request that creates a conversation. */
export const creationBody = ({ profile, temporary = false }: NewConversation) => ({
  profile,
  ...(temporary ? { temporary } : {}),
});

/**
 * Reports whether a refused creation means that the conversation exists, with other values. A text for a temporary
 * conversation does not belong into another one.
 */
export function alreadyExists(refusal: Refusal, { temporary = false }: NewConversation): boolean {
  const current = refusal.problem?.current as Schemas["Conversation"] | null | undefined;
  return refusal.status === 409 && (!temporary || current?.temporary === true);
}

/** The version and the project of a created conversation: of the response, or of the refusal that it exists. */
export type Created = Pick<Schemas["Conversation"], "version" | "project_id">;

/** The request that puts a created conversation into its project; null: it belongs into none, or is there. */
export function placementOf({ project }: NewConversation, created: Created) {
  if (project === undefined || created.project_id === project) return null;
  return { body: { project_id: project }, header: { "If-Match": `"v${created.version}"` } };
}

/** A message that the user sends. */
export interface MessageInput {
  conversationID: string;
  text: string;
  /** The files of a chat message; absent: none. */
  attachments?: readonly Attachment[];
  /** reject: refused during a live turn, and the user decides. */
  ifBusy: BusyAction;
  branch?: Schemas["BranchRequest"];
  profile?: Profile;
  /** The tools that its turn may use; absent: all. */
  tools?: ToolChoice;
  /** For steer and interrupt only: the turn that receives the input. */
  targetTurn?: string;
  /** The head message that the user saw, which the service compares with the current one; absent: not compared. */
  expectedHead?: string | null;
  /** Set if the conversation does not exist yet: how it is created. */
  newConversation?: NewConversation;
  /** For steer and interrupt only: the follow-up with the same text, which is cancelled before the input is sent. */
  replaces?: { followUpID: string; version: number; cancelled: boolean };
}

/** An outbox message: with a turn, a steering input; without one, a chat message that starts a turn or is queued. */
export interface OutboxMessage extends MessageInput {
  /** The identifier: the Idempotency-Key of a chat message, the client_steering_id of a steering input. */
  key: string;
  /** The account that wrote it. It is never sent for another account. */
  account: string;
  /** The body of the request, byte for byte the same in every attempt, except for tools that the service does not have. */
  body: string;
  /** When it was written, in milliseconds since 1970; the messages of a lane are sent in this order. */
  writtenAt: number;
  /** When its request was first sent; the service remembers the key for a day from then. null: not sent, or refused. */
  firstSentAt: number | null;
  /** Whether it is sent automatically when a rate limit ends. */
  autoSend: boolean;
  state: "sending" | "waiting" | "refused" | "accepted";
  failure: DeliveryFailure | null;
  /** After acceptance: the turn that the message started, if any. */
  turnID: string | null;
  /** After acceptance: the follow-up that the message became, if it was queued. */
  followUpID: string | null;
}

/**
 * The key of a message's lane. The messages of a lane are sent one at a time. A conversation has two lanes: one for
 * chat messages and one for steering inputs, which do not wait for chat messages.
 */
export function laneOf(message: Pick<OutboxMessage, "account" | "conversationID" | "targetTurn">): string {
  return `${message.account}/${message.conversationID}/${message.targetTurn === undefined ? "chat" : "steering"}`;
}

/** The body of the request that sends an outbox message. */
export function bodyOf(message: Omit<OutboxMessage, "body">): string {
  const input = [
    ...(message.text === "" ? [] : [{ type: "text", text: message.text }]),
    ...(message.attachments ?? []).map(({ id }) => ({ type: "file", file_id: id })),
  ];
  if (message.targetTurn !== undefined) {
    const steering = {
      type: "input",
      turn_id: message.targetTurn,
      client_steering_id: message.key,
      input,
      delivery: message.ifBusy === "interrupt" ? "interrupt" : "next_step",
    };
    return JSON.stringify(steering);
  }
  return JSON.stringify({
    conversation_id: message.conversationID,
    input,
    if_busy: message.ifBusy === "queue" ? "queue" : "reject",
    ...(message.branch === undefined ? {} : { branch: message.branch }),
    ...(message.profile === undefined ? {} : { profile: message.profile }),
    ...(message.tools === undefined ? {} : { tools: message.tools }),
    ...(message.expectedHead === undefined ? {} : { expected_head_message_id: message.expectedHead }),
  });
}

/** The tools of a message that the service does not have, so that it refused the message. */
export function unknownTools({ tools }: OutboxMessage, { status, problem }: Refusal): string[] {
  const fields = status === 422 ? (problem?.errors ?? []).map(({ field }) => field) : [];
  return (tools?.off ?? []).filter((_, at) => fields.includes(`body.tools.off[${at}]`));
}

/**
 * Returns a message that may use some tools which it did not allow. Its key stays the same: if the service accepted an earlier
 * attempt without a response, it does not accept this one too.
 */
export function withoutUnknownTools(message: OutboxMessage, unknown: readonly string[]): OutboxMessage {
  const changed = { ...message, tools: withoutTools(message.tools ?? {}, unknown) };
  return { ...changed, body: bodyOf(changed) };
}

/** The text of the service about a refusal, in sentences: the detail, or the messages about fields that the detail leaves out. */
export function failureText({ fields, detail }: Pick<DeliveryFailure, "fields" | "detail">): string {
  if (fields.some(({ message }) => detail.includes(message))) return detail;
  return fields.map(fieldSentence).join(" ") || detail;
}

/** A message about a field continues a sentence about it. */
function fieldSentence({ field, message }: DeliveryFailure["fields"][number]): string {
  return `The ${field.replace(/^body\./, "")} field ${message}.`;
}

/** The decision after a refusal: repeat the request after wait milliseconds, or do nothing until the user decides. */
export type RetryDecision = { again: true; wait: number } | { again: false };

const firstPause = 500;
const longestPause = 30_000;
/** In milliseconds. The service forgets a key after 24 hours; one hour is left for clock drift and slow requests. */
const keyLifetime = 23 * 3_600_000;

/** Decides what follows from a refusal. dice is a random number from 0 to 1 that spreads the retries of devices. */
export function decideRetry(message: OutboxMessage, refusal: Refusal, failures: number, dice: number): RetryDecision {
  const wait = Math.max(refusal.retryAfter, Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + dice / 2));
  if (refusal.outcomeUnknown || refusal.status === 408) return { again: true, wait };
  // Only a sign-in helps; it ends the pause.
  if (refusal.status === 401) return { again: true, wait: Infinity };
  if (refusal.code === "idempotency_in_progress") return { again: true, wait };
  if (refusal.code === "rate_limited" && message.autoSend) return { again: true, wait };
  return { again: false };
}

/** Whether the service may have forgotten the key, so that it would take a repeat for a new message. */
export function keyExpired(message: OutboxMessage, now: number): boolean {
  return message.firstSentAt !== null && now - message.firstSentAt > keyLifetime;
}

/** Milliseconds that a message still has to wait for a rate limit, also after a reload of the page. */
export function remainingWait(message: OutboxMessage, now: number): number {
  return message.state === "waiting" && message.failure?.status === 429 ? message.failure.retryAt - now : 0;
}

export function failureOf(
  refusal: Refusal,
  now: number,
  wait = refusal.retryAfter,
  down: readonly string[] = [],
): DeliveryFailure {
  const until = wait > 0 && Number.isFinite(wait) ? now + wait : 0;
  return {
    status: refusal.status,
    code: refusal.code,
    detail: refusal.detail,
    fields: refusal.problem?.errors ?? [],
    downParts: down,
    retryAt: until,
    liveTurn: refusal.liveTurn,
  };
}
