// The queue of the highlighting worker, with a worker whose responses the test sends.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Highlighter } from "./highlight";
import type { HighlightedLines, HighlightJob } from "./highlight-messages";

class FakeWorker {
  static all: FakeWorker[] = [];
  onmessage: ((event: { data: { id: number; lines: HighlightedLines | null } }) => void) | null = null;
  readonly jobs: HighlightJob[] = [];
  ended = false;
  constructor() {
    FakeWorker.all.push(this);
  }
  postMessage(job: HighlightJob): void {
    this.jobs.push(job);
  }
  terminate(): void {
    this.ended = true;
  }
  /** Sends the response to the job for a code. */
  respond(code: string): void {
    const job = this.jobs.find((one) => one.code === code)!;
    this.onmessage!({ data: { id: job.id, lines: [] as unknown as HighlightedLines } });
  }
}

beforeEach(() => {
  FakeWorker.all = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("the time limit of a job starts when the worker starts the job, not when the job is queued", async () => {
  const highlighter = new Highlighter(() => new FakeWorker() as unknown as Worker);
  const slow = highlighter.highlight("slow", "python");
  const next = highlighter.highlight("next", "go");
  vi.advanceTimersByTime(7_900);
  FakeWorker.all[0]!.respond("slow");
  vi.advanceTimersByTime(7_900);
  FakeWorker.all[0]!.respond("next");
  expect(await slow).not.toBeNull();
  expect(await next).not.toBeNull();
  expect(FakeWorker.all.length).toBe(1);
});

test("a worker that exceeds the limit is replaced, and the next worker highlights the waiting code", async () => {
  const highlighter = new Highlighter(() => new FakeWorker() as unknown as Worker);
  const endless = highlighter.highlight("endless", "python");
  const behind = highlighter.highlight("behind", "go");
  vi.advanceTimersByTime(8_000);
  expect(await endless).toBeNull();
  expect(FakeWorker.all.map(({ ended }) => ended)).toEqual([true, false]);
  FakeWorker.all[1]!.respond("behind");
  expect(await behind).not.toBeNull();
  expect(await highlighter.highlight("again", "python")).toBeNull();
});

test("the result of code that is still streaming is not cached", async () => {
  const highlighter = new Highlighter(() => new FakeWorker() as unknown as Worker);
  const streaming = highlighter.highlight("a", "go", false);
  FakeWorker.all[0]!.respond("a");
  expect(await streaming).not.toBeNull();
  expect(highlighter.cached("a", "go")).toBeUndefined();
});
