// Has code coloured in a worker. What was coloured once is remembered; code that takes too long stays plain.
import type { Language } from "./languages";
import type { Painted, PaintJob, PaintResult } from "./paint-kinds";
import workerAddress from "./paint.worker?worker&url";

/** Characters of code above which nothing is coloured, and of all code that is remembered. */
const longest = 100_000;
const remembered = 1_000_000;
/** Milliseconds that the worker may take for a piece of code, the loading of its grammar included. */
const patience = 8_000;

interface Waiting {
  job: PaintJob;
  done(lines: Painted | null): void;
  /** Runs while the worker is at this job; undefined while it is at an earlier one. */
  timer?: ReturnType<typeof setTimeout>;
}

let worker: Worker | null = null;
let made = 0;
let size = 0;
/** In the order in which the worker takes them. */
const waiting = new Map<number, Waiting>();
const known = new Map<string, Painted>();
const refused = new Set<Language>(); // whose grammar did not come to an end

/** What is known already; undefined when it has to be asked for. */
export function paintedAlready(code: string, language: Language): Painted | undefined {
  return known.get(keyOf(code, language));
}

/** Colours code; null when it stays plain. */
export function paint(code: string, language: Language): Promise<Painted | null> {
  const before = paintedAlready(code, language);
  if (before !== undefined) return Promise.resolve(before);
  if (code.length > longest || refused.has(language)) return Promise.resolve(null);
  return new Promise((resolve) => {
    const job: PaintJob = { id: ++made, code, language };
    waiting.set(job.id, { job, done: resolve });
    begin()?.postMessage(job);
    timeFirst();
  });
}

/** Limits the time of the job that the worker is at. */
function timeFirst(): void {
  const first = waiting.values().next().value;
  if (first !== undefined) first.timer ??= setTimeout(() => giveUp(first.job), patience);
}

function begin(): Worker | null {
  if (worker !== null) return worker;
  try {
    worker = new Worker(trusted(workerAddress), { type: "module" });
  } catch {
    return null; // the code stays plain
  }
  worker.onmessage = ({ data }: MessageEvent<PaintResult>) => {
    const entry = waiting.get(data.id);
    if (entry === undefined) return;
    finish(entry, data.lines);
  };
  return worker;
}

function finish(entry: Waiting, lines: Painted | null): void {
  clearTimeout(entry.timer);
  waiting.delete(entry.job.id);
  if (lines !== null) remember(entry.job, lines);
  entry.done(lines);
  timeFirst();
}

/** Ends a worker that is lost in a grammar; what else waits for it begins again with another. */
function giveUp(job: PaintJob): void {
  refused.add(job.language);
  worker?.terminate();
  worker = null;
  for (const entry of [...waiting.values()]) {
    if (entry.job.language === job.language) finish(entry, null);
    else begin()?.postMessage(entry.job);
  }
}

function remember(job: PaintJob, lines: Painted): void {
  known.set(keyOf(job.code, job.language), lines);
  size += job.code.length;
  for (const key of known.keys()) {
    if (size <= remembered) return;
    known.delete(key);
    size -= key.length - key.indexOf("\n") - 1;
  }
}

function keyOf(code: string, language: Language): string {
  return `${language}\n${code}`;
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): { createScriptURL(address: string): string };
}

let policy: ReturnType<TrustedTypes["createPolicy"]> | null = null;

/** The document's policy takes the address of no script but this worker's. */
function trusted(address: string): string {
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
