// The queue in front of the worker that colours code, with a worker that the test answers for.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Painted, PaintJob } from "./paint-kinds";

class FakeWorker {
  static all: FakeWorker[] = [];
  onmessage: ((event: { data: { id: number; lines: Painted | null } }) => void) | null = null;
  readonly jobs: PaintJob[] = [];
  ended = false;
  constructor() {
    FakeWorker.all.push(this);
  }
  postMessage(job: PaintJob): void {
    this.jobs.push(job);
  }
  terminate(): void {
    this.ended = true;
  }
  /** Answers the job of a code. */
  answer(code: string): void {
    const job = this.jobs.find((one) => one.code === code)!;
    this.onmessage!({ data: { id: job.id, lines: [] as unknown as Painted } });
  }
}

beforeEach(() => {
  FakeWorker.all = [];
  vi.resetModules();
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("Worker", FakeWorker);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("the time of a piece of code counts from when the worker is at it, not from when it was queued", async () => {
  const { paint } = await import("./paint");
  const slow = paint("slow", "python");
  const next = paint("next", "go");
  vi.advanceTimersByTime(7_900);
  FakeWorker.all[0]!.answer("slow");
  vi.advanceTimersByTime(7_900);
  FakeWorker.all[0]!.answer("next");
  expect(await slow).not.toBeNull();
  expect(await next).not.toBeNull();
  expect(FakeWorker.all.length).toBe(1);
});

test("a worker that does not come to an end is replaced, and what waited behind it is coloured by the next one", async () => {
  const { paint } = await import("./paint");
  const endless = paint("endless", "python");
  const behind = paint("behind", "go");
  vi.advanceTimersByTime(8_000);
  expect(await endless).toBeNull();
  expect(FakeWorker.all.map(({ ended }) => ended)).toEqual([true, false]);
  FakeWorker.all[1]!.answer("behind");
  expect(await behind).not.toBeNull();
  expect(await paint("again", "python")).toBeNull();
});
