// How a turn ended, in words: what is shown below its answer and what is said of it. Pure.
import type { Message, TurnError, TurnFinished } from "../generated/events";
import type { Word } from "../words/words";

export interface End {
  /** Of the turn. */
  status: string;
  stop: string | null;
  error: TurnError | null;
}

const byStop: Readonly<Record<string, Word>> = {
  max_tokens: "transcript.end.max_tokens",
  deadline: "transcript.end.deadline",
  budget_reached: "transcript.end.budget_reached",
  tool_limit: "transcript.end.tool_limit",
};

const byError: Readonly<Record<string, Word>> = {
  model_unavailable: "transcript.end.model_unavailable",
  model_rate_limited: "transcript.end.model_rate_limited",
  model_protocol: "transcript.end.model_protocol",
  interrupted: "transcript.end.interrupted",
};

/** The words for an end that is no plain one. */
export function wordOf({ status, stop, error }: End): Word {
  if (status === "cancelled") return "transcript.end.cancelled";
  return byStop[stop ?? ""] ?? byError[error?.code ?? ""] ?? (status === "incomplete" ? "transcript.end.incomplete" : "transcript.end.failed");
}

/** Whether nothing went wrong: the user stopped it, or it is as long as it may be. */
export function isCalm({ status, stop }: End): boolean {
  return status === "completed" || status === "cancelled" || stop === "max_tokens";
}

/** What who listens is told of an end before anything else; urgent: it interrupts what is being said. */
export function told(end: End): { word: Word; urgent: boolean } {
  return { word: end.status === "completed" ? "transcript.answered" : wordOf(end), urgent: !isCalm(end) };
}

/** The end as the turn's last event tells it. */
export function endOf({ status, stop_reason, error }: TurnFinished): End {
  return { status, stop: stop_reason, error };
}

/** The end as far as a message tells it, which does not say why; null while it is written. */
export function endOfMessage({ status }: Message): End | null {
  if (status === "streaming") return null;
  return { status: status === "complete" ? "completed" : status, stop: null, error: null };
}
