// Texts for how a turn ended: displayed below its answer and announced to screen readers. Pure.
import type { Message, TurnError, TurnFinished } from "../../generated/events";
import type { MessageKey } from "../../messages/catalog";

export interface End {
  /** The status of the turn. */
  status: string;
  stop: string | null;
  error: TurnError | null;
}

const stopMessages: Readonly<Record<string, MessageKey>> = {
  max_tokens: "transcript.end.max_tokens",
  deadline: "transcript.end.deadline",
  budget_reached: "transcript.end.budget_reached",
  tool_limit: "transcript.end.tool_limit",
};

const errorMessages: Readonly<Record<string, MessageKey>> = {
  model_unavailable: "transcript.end.model_unavailable",
  model_rate_limited: "transcript.end.model_rate_limited",
  model_protocol: "transcript.end.model_protocol",
  model_context_exceeded: "transcript.end.model_context_exceeded",
  model_rejected: "transcript.end.model_rejected",
  model_unauthorized: "transcript.end.model_unauthorized",
  model_credit_used_up: "transcript.end.model_credit_used_up",
  interrupted: "transcript.end.interrupted",
};

/** Returns the text for an end other than completed. */
export function messageOf({ status, stop, error }: End): MessageKey {
  if (status === "cancelled") return "transcript.end.cancelled";
  return (
    stopMessages[stop ?? ""] ??
    errorMessages[error?.code ?? ""] ??
    (status === "incomplete" ? "transcript.end.incomplete" : "transcript.end.failed")
  );
}

/** Reports whether nothing went wrong: the turn completed, the user stopped it, or it reached the maximum length. */
export function isExpectedEnd({ status, stop }: End): boolean {
  return status === "completed" || status === "cancelled" || stop === "max_tokens";
}

/** Returns the announcement of an end for screen readers. urgent: it interrupts the current speech. */
export function announcementOf(end: End): { key: MessageKey; urgent: boolean } {
  return { key: end.status === "completed" ? "transcript.answered" : messageOf(end), urgent: !isExpectedEnd(end) };
}

/** Returns the end from the last event of a turn. */
export function endOf({ status, stop_reason, error }: TurnFinished): End {
  return { status, stop: stop_reason, error };
}

/** Returns the end from a message, without its reason; null while the message is streaming. */
export function endOfMessage({ status }: Message): End | null {
  if (status === "streaming") return null;
  return { status: status === "complete" ? "completed" : status, stop: null, error: null };
}
