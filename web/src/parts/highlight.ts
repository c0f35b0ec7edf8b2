// Highlights code in a worker. Results are cached; code that takes too long stays plain.
import type { Language } from "./languages";
import type { HighlightedLines, HighlightJob, HighlightResult } from "./highlight-messages";
import { trustedAddress } from "../api/trusted-address";
import workerAddress from "./highlight.worker?worker&url";

/** Limits in characters: of the code that is highlighted, and of the code whose results are cached. */
const maxCodeLength = 100_000;
const maxCacheSize = 1_000_000;
/** Time limit of a job in milliseconds, from when the worker starts it; it includes loading the grammar. */
const jobTimeout = 8_000;

interface PendingJob {
  job: HighlightJob;
  done(lines: HighlightedLines | null): void;
  /** Whether the result is cached. */
  caches: boolean;
  /** Set while the worker runs this job; undefined while it runs an earlier one. */
  timer?: ReturnType<typeof setTimeout>;
}

export class Highlighter {
  readonly #createWorker: () => Worker;
  #worker: Worker | null = null;
  #lastJobID = 0;
  #cacheSize = 0;
  /** The unfinished jobs, in the order in which the worker runs them. */
  readonly #pendingJobs = new Map<number, PendingJob>();
  readonly #cache = new Map<string, HighlightedLines>();
  readonly #slowLanguages = new Set<Language>(); // languages with a job that exceeded the time limit

  constructor(createWorker: () => Worker) {
    this.#createWorker = createWorker;
  }

  /** Returns the cached result; undefined if there is none. */
  cached(code: string, language: Language): HighlightedLines | undefined {
    return this.#cache.get(keyOf(code, language));
  }

  /** Highlights code; null: it stays plain. caches: whether the result is cached; not that of code that is still streaming. */
  highlight(code: string, language: Language, caches = true): Promise<HighlightedLines | null> {
    const before = this.cached(code, language);
    if (before !== undefined) return Promise.resolve(before);
    if (code.length > maxCodeLength || this.#slowLanguages.has(language)) return Promise.resolve(null);
    return new Promise((resolve) => {
      const job: HighlightJob = { id: ++this.#lastJobID, code, language };
      this.#pendingJobs.set(job.id, { job, done: resolve, caches });
      this.#startWorker()?.postMessage(job);
      this.#timeFirst();
    });
  }

  /** Starts the timer of the job that the worker runs now, unless it has been started. */
  #timeFirst(): void {
    const first = this.#pendingJobs.values().next().value;
    if (first !== undefined) first.timer ??= setTimeout(() => this.#restartWorker(first.job), jobTimeout);
  }

  #startWorker(): Worker | null {
    if (this.#worker !== null) return this.#worker;
    try {
      this.#worker = this.#createWorker();
    } catch {
      return null; // the code stays plain
    }
    this.#worker.onmessage = ({ data }: MessageEvent<HighlightResult>) => {
      const entry = this.#pendingJobs.get(data.id);
      if (entry !== undefined) this.#finish(entry, data.lines);
    };
    return this.#worker;
  }

  #finish(entry: PendingJob, lines: HighlightedLines | null): void {
    clearTimeout(entry.timer);
    this.#pendingJobs.delete(entry.job.id);
    if (lines !== null && entry.caches) this.#store(entry.job, lines);
    entry.done(lines);
    this.#timeFirst();
  }

  /** Terminates a worker whose job exceeded the time limit. The other jobs start again in a new worker. */
  #restartWorker(job: HighlightJob): void {
    this.#slowLanguages.add(job.language);
    this.#worker?.terminate();
    this.#worker = null;
    for (const entry of [...this.#pendingJobs.values()]) {
      if (entry.job.language === job.language) this.#finish(entry, null);
      else this.#startWorker()?.postMessage(entry.job);
    }
  }

  #store(job: HighlightJob, lines: HighlightedLines): void {
    this.#cache.set(keyOf(job.code, job.language), lines);
    this.#cacheSize += job.code.length;
    for (const key of this.#cache.keys()) {
      if (this.#cacheSize <= maxCacheSize) return;
      this.#cache.delete(key);
      this.#cacheSize -= key.length - key.indexOf("\n") - 1;
    }
  }
}

const keyOf = (code: string, language: Language): string => `${language}\n${code}`;

/** Creates workers. */
const newWorker = () => new Worker(trustedAddress(workerAddress), { type: "module" });

/** The highlighter of this page. */
export const highlighter = new Highlighter(newWorker);
