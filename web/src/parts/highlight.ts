// Highlights code in a worker. Results are cached; code that takes too long stays plain.
import type { Language } from "./languages";
import type { HighlightedLines, HighlightJob, HighlightResult } from "./highlight-messages";
import workerAddress from "./highlight.worker?worker&url";

/** Limits in characters: of the code that is highlighted, and of the code whose results are cached. */
const maxCodeLength = 100_000;
const maxCacheSize = 1_000_000;
/** Time limit of a job in milliseconds, from when the worker starts it; it includes loading the grammar. */
const jobTimeout = 8_000;

interface PendingJob {
  job: HighlightJob;
  done(lines: HighlightedLines | null): void;
  /** Set while the worker runs this job; undefined while it runs an earlier one. */
  timer?: ReturnType<typeof setTimeout>;
}

let worker: Worker | null = null;
let lastJobID = 0;
let cacheSize = 0;
/** The unfinished jobs, in the order in which the worker runs them. */
const pendingJobs = new Map<number, PendingJob>();
const cache = new Map<string, HighlightedLines>();
const slowLanguages = new Set<Language>(); // languages with a job that exceeded the time limit

/** Returns the cached result; undefined if there is none. */
export function cachedHighlight(code: string, language: Language): HighlightedLines | undefined {
  return cache.get(keyOf(code, language));
}

/** Highlights code; null: it stays plain. */
export function highlight(code: string, language: Language): Promise<HighlightedLines | null> {
  const before = cachedHighlight(code, language);
  if (before !== undefined) return Promise.resolve(before);
  if (code.length > maxCodeLength || slowLanguages.has(language)) return Promise.resolve(null);
  return new Promise((resolve) => {
    const job: HighlightJob = { id: ++lastJobID, code, language };
    pendingJobs.set(job.id, { job, done: resolve });
    startWorker()?.postMessage(job);
    timeFirst();
  });
}

/** Starts the timer of the job that the worker runs now, unless it has been started. */
function timeFirst(): void {
  const first = pendingJobs.values().next().value;
  if (first !== undefined) first.timer ??= setTimeout(() => restartWorker(first.job), jobTimeout);
}

function startWorker(): Worker | null {
  if (worker !== null) return worker;
  try {
    worker = new Worker(trustedURL(workerAddress), { type: "module" });
  } catch {
    return null; // the code stays plain
  }
  worker.onmessage = ({ data }: MessageEvent<HighlightResult>) => {
    const entry = pendingJobs.get(data.id);
    if (entry === undefined) return;
    finish(entry, data.lines);
  };
  return worker;
}

function finish(entry: PendingJob, lines: HighlightedLines | null): void {
  clearTimeout(entry.timer);
  pendingJobs.delete(entry.job.id);
  if (lines !== null) store(entry.job, lines);
  entry.done(lines);
  timeFirst();
}

/** Terminates a worker whose job exceeded the time limit. The other jobs start again in a new worker. */
function restartWorker(job: HighlightJob): void {
  slowLanguages.add(job.language);
  worker?.terminate();
  worker = null;
  for (const entry of [...pendingJobs.values()]) {
    if (entry.job.language === job.language) finish(entry, null);
    else startWorker()?.postMessage(entry.job);
  }
}

function store(job: HighlightJob, lines: HighlightedLines): void {
  cache.set(keyOf(job.code, job.language), lines);
  cacheSize += job.code.length;
  for (const key of cache.keys()) {
    if (cacheSize <= maxCacheSize) return;
    cache.delete(key);
    cacheSize -= key.length - key.indexOf("\n") - 1;
  }
}

function keyOf(code: string, language: Language): string {
  return `${language}\n${code}`;
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(address: string): string },
  ): { createScriptURL(address: string): string };
}

let policy: ReturnType<TrustedTypes["createPolicy"]> | null = null;

/** Returns the worker's URL, as a trusted type if the browser has these. The policy rejects every other script. */
function trustedURL(address: string): string {
  const types = (window as { trustedTypes?: TrustedTypes }).trustedTypes;
  if (types === undefined) return address;
  policy ??= types.createPolicy("turnstone", {
    createScriptURL(wanted) {
      if (wanted !== workerAddress) throw new TypeError("not a script of this app");
      return wanted;
    },
  });
  return policy.createScriptURL(address);
}
