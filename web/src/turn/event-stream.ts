// Reads responses of server-sent events: of a turn, or of the account's feed.
import { createParser } from "eventsource-parser";

/** The dependencies of a stream; tests replace them. */
export interface StreamDependencies {
  fetch: typeof fetch;
  /** Waits; ends early when the network is back or the visibility of the page changes. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/** One server-sent event. */
export interface Frame {
  id: string | undefined;
  data: string;
}

/** Milliseconds without data after which a connection counts as lost: two missed heartbeats. */
const idleTimeout = 20_000;
const firstPause = 250;
const longestPause = 8_000;

/** Returns how long to wait before the next attempt, in milliseconds. */
export function pauseAfter(failures: number): number {
  return Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + Math.random() / 2);
}

/** Requests a stream. Aborts the request if there is no response in time. */
export async function openStream(path: string, signal: AbortSignal, deps: StreamDependencies): Promise<Response> {
  const timeout = new AbortController();
  const watchdog = setTimeout(() => timeout.abort(), idleTimeout);
  try {
    return await deps.fetch(path, {
      headers: { Accept: "text/event-stream" },
      signal: AbortSignal.any([signal, timeout.signal]),
      cache: "no-store",
    });
  } finally {
    clearTimeout(watchdog);
  }
}

/** Reads events until sink returns true (returns true), the body ends, or no data arrives in time. */
export async function readStream(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  sink: (frames: Frame[]) => boolean,
): Promise<boolean> {
  let batch: Frame[] = [];
  const parser = createParser({ onEvent: ({ id, data }) => void batch.push({ id, data }) });
  const reader = body.getReader();
  const text = new TextDecoder();
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  const stop = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", stop);
  try {
    for (;;) {
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, idleTimeout);
      const { done, value } = await reader.read();
      if (done) return false;
      parser.feed(text.decode(value, { stream: true }));
      const frames = batch;
      batch = [];
      if (frames.length > 0 && sink(frames)) return true;
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", stop);
    stop();
  }
}
