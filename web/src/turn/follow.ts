// Follows the events of one turn or research task over the network until it ends. After any failure it resumes after the
// last sequence.
import type { Schemas } from "../api/client";
import type { TurnEvent } from "../generated/events";
import { readRefusal, retryAfter } from "../api/problem";
import { openStream, pauseAfter, readStream, type StreamDependencies } from "./event-stream";

export type TaskEvent = Schemas["ResearchEvent"];

/** An event of the log of a turn or of a research task. */
export type LogEvent = TurnEvent | TaskEvent;

/** The state of the connection to a turn or a task. */
export type ConnectionState =
  | "connecting"
  | "open"
  /** The connection broke and is retried. The turn continues without it. */
  | "waiting"
  /** The connection broke, and at least two attempts in succession had no usable response. */
  | "unreachable"
  /** The session has ended; the turn is followed again after a sign-in. */
  | "signed_out"
  /** The account has no such turn. */
  | "gone"
  /** The cursor does not match the log: the conversation must be loaded again. */
  | "stale"
  /** All events were read. */
  | "ended";

export interface Follower<Event extends LogEvent = TurnEvent> {
  events(events: Event[]): void;
  link(link: ConnectionState): void;
}

/** Returns the path of the events of a turn or of a research task, by its identifier. */
const eventsOf = (id: string): string => (id.startsWith("task_") ? `/research-tasks/${id}` : `/chat/turns/${id}`);

/**
 * Follows a turn or a research task until it has ended or cannot be followed (401, 404, 409), or until signal aborts. Never
 * throws.
 */
export async function follow<Event extends LogEvent = TurnEvent>(
  id: string,
  after: number,
  follower: Follower<Event>,
  signal: AbortSignal,
  deps: StreamDependencies,
): Promise<void> {
  let last = after;
  let failures = 0;
  /** The attempts in succession without a response or with a 5xx. */
  let unanswered = 0;
  const lost = () => (unanswered >= 2 ? "unreachable" : "waiting");
  while (!signal.aborted) {
    follower.link(failures === 0 ? "connecting" : lost());
    let wait = pauseAfter(failures);
    try {
      unanswered += 1;
      const response = await openStream(`${eventsOf(id)}/events?after=${last}`, signal, deps);
      if (response.status < 500) unanswered = 0;
      if (response.status === 200 && response.body !== null) {
        follower.link("open");
        const ended = await readStream(response.body, signal, (frames) => {
          const events = frames.map(({ data }) => JSON.parse(data) as Event);
          failures = 0;
          last = Math.max(last, events.at(-1)?.sequence ?? last);
          follower.events(events);
          return events.some(({ type }) => type === "turn.finished" || type === "task.finished");
        });
        if (ended) return follower.link("ended");
        if (failures === 0) {
          failures = 1;
          continue; // a draining server ends its streams: reconnect without a pause
        }
      }
      if (response.status === 204) return follower.link("ended");
      if (response.status === 401) return follower.link("signed_out");
      if (response.status === 404) return follower.link("gone");
      if (response.status === 409) return follower.link("stale");
      wait = Math.max(wait, retryAfter(response));
      await readRefusal(response);
    } catch {
      if (signal.aborted) return;
    }
    failures += 1;
    follower.link(lost());
    await deps.pause(wait, signal);
  }
}
