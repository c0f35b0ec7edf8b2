// Sends many requests, a few at a time. After a request that the service refuses for its rate (429), all requests pause for as
// long as the service asks, and the refused one is repeated.
import { Refusal } from "./problem";

/** How many requests are in flight at the same time. */
const maxInFlight = 4;
/** How often a request is repeated after a 429. */
const maxRepeats = 10;
/** The shortest and the longest pause after a 429, in milliseconds. A request that has to wait for longer is refused. */
const shortestPause = 500;
const longestPause = 60_000;

export interface Pace {
  /** Sends a request as soon as it is its turn: those that come first are sent first. Returns its response. */
  run<Result>(send: () => Promise<Result>): Promise<Result>;
  /** Sends all requests that wait for others, because the page may end. */
  startAll(): void;
}

/** Returns the common pace of requests. */
export function newPace(
  sleep = (duration: number) => new Promise<void>((resolve) => setTimeout(resolve, duration)),
): Pace {
  let pauseEnd = 0;
  let all = false;
  let inFlight = 0;
  const waiting: (() => void)[] = [];
  const sendPatiently = async <Result>(send: () => Promise<Result>): Promise<Result> => {
    for (let repeats = 0; ; repeats++) {
      for (let rest = pauseEnd - Date.now(); rest > 0 && !all; rest = pauseEnd - Date.now()) await sleep(rest);
      try {
        return await send();
      } catch (refusal) {
        const limited = refusal instanceof Refusal && refusal.status === 429 && refusal.retryAfter <= longestPause;
        if (!limited || all || repeats === maxRepeats) throw refusal;
        pauseEnd = Math.max(pauseEnd, Date.now() + Math.max(refusal.retryAfter, shortestPause));
      }
    }
  };
  return {
    run: async (send) => {
      if (inFlight >= maxInFlight && !all) await new Promise<void>((start) => waiting.push(start));
      else inFlight++;
      try {
        return await sendPatiently(send);
      } finally {
        const startNext = waiting.shift(); // in place of this one
        if (startNext) startNext();
        else inFlight--;
      }
    },
    startAll: () => {
      all = true;
      inFlight += waiting.length;
      for (const start of waiting.splice(0)) start();
    },
  };
}

export interface Batch<Result> {
  /** The results in the order of the items, after the last response. */
  results: Promise<PromiseSettledResult<Result>[]>;
  /** Sends all requests that wait for others, because the page may end. */
  startAll(): void;
}

/** Sends one request for each of several items. */
export function startBatch<Item, Result>(
  items: readonly Item[],
  send: (item: Item) => Promise<Result>,
  sleep?: (duration: number) => Promise<void>,
): Batch<Result> {
  const { run, startAll } = newPace(sleep);
  return { results: Promise.allSettled(items.map((item) => run(() => send(item)))), startAll };
}
