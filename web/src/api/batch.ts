// Sends one request for each of several items, a few at a time. After a request that the service refuses for its rate
// (429), all requests pause for as long as the service asks, and the refused one is repeated.
import { Refusal } from "./problem";

/** How many requests are in flight at the same time. */
const maxInFlight = 4;
/** How often a request is repeated after a 429. */
const maxRepeats = 10;
/** The shortest and the longest pause after a 429, in milliseconds. A request that has to wait for longer is refused. */
const shortestPause = 500;
const longestPause = 60_000;

export interface Batch<Result> {
  /** The results in the order of the items, after the last response. */
  results: Promise<PromiseSettledResult<Result>[]>;
  /** Starts all requests that wait for others, because the page may end. */
  startAll(): void;
}

export function startBatch<Item, Result>(
  items: readonly Item[],
  send: (item: Item) => Promise<Result>,
  sleep = (duration: number) => new Promise<void>((resolve) => setTimeout(resolve, duration)),
): Batch<Result> {
  let pauseEnd = 0;
  let all = false;
  const sendPatiently = async (item: Item): Promise<Result> => {
    for (let repeats = 0; ; repeats++) {
      for (let rest = pauseEnd - Date.now(); rest > 0 && !all; rest = pauseEnd - Date.now()) await sleep(rest);
      try {
        return await send(item);
      } catch (refusal) {
        const limited = refusal instanceof Refusal && refusal.status === 429 && refusal.retryAfter <= longestPause;
        if (!limited || all || repeats === maxRepeats) throw refusal;
        pauseEnd = Math.max(pauseEnd, Date.now() + Math.max(refusal.retryAfter, shortestPause));
      }
    }
  };
  const waiting: (() => void)[] = [];
  const startNext = () => waiting.shift()?.();
  const results = Promise.allSettled(
    items.map((item) =>
      new Promise<void>((start) => waiting.push(start)).then(() => sendPatiently(item)).finally(startNext),
    ),
  );
  for (let started = 0; started < maxInFlight; started++) startNext();
  return {
    results,
    startAll: () => {
      all = true;
      while (waiting.length > 0) startNext();
    },
  };
}
