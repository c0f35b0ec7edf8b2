import { describe, expect, test } from "vitest";
import type { Message, TurnFinished } from "../generated/events";
import { endOf, endOfMessage, isCalm, told, wordOf } from "./end";

const finished = (status: string, stop_reason: string, code?: string) =>
  endOf({ status, stop_reason, error: code === undefined ? null : { code, detail: "", retryable: true } } as unknown as TurnFinished);

describe("how an answer ended", () => {
  test("who listens is told of an answer only when there is one", () => {
    expect(told(finished("completed", "end_turn"))).toEqual({ word: "transcript.answered", urgent: false });
    expect(told(finished("completed", "refusal"))).toEqual({ word: "transcript.answered", urgent: false });
    expect(told(finished("cancelled", "cancelled"))).toEqual({ word: "transcript.end.cancelled", urgent: false });
    expect(told(finished("incomplete", "max_tokens"))).toEqual({ word: "transcript.end.max_tokens", urgent: false });
  });

  test("what went wrong is urgent", () => {
    expect(told(finished("failed", "error", "model_unavailable"))).toEqual({ word: "transcript.end.model_unavailable", urgent: true });
    expect(told(finished("incomplete", "error", "model_rate_limited"))).toEqual({ word: "transcript.end.model_rate_limited", urgent: true });
    expect(told(finished("incomplete", "deadline"))).toEqual({ word: "transcript.end.deadline", urgent: true });
  });

  test("a message tells of the end, but not why", () => {
    const ends = (status: string) => endOfMessage({ status } as Message);
    expect(ends("streaming")).toBeNull();
    expect(told(ends("complete")!)).toEqual({ word: "transcript.answered", urgent: false });
    expect(told(ends("cancelled")!)).toEqual({ word: "transcript.end.cancelled", urgent: false });
    expect(told(ends("failed")!)).toEqual({ word: "transcript.end.failed", urgent: true });
    expect(told(ends("incomplete")!)).toEqual({ word: "transcript.end.incomplete", urgent: true });
  });

  test("an end of which no more is known has words, too", () => {
    expect(wordOf({ status: "incomplete", stop: null, error: null })).toBe("transcript.end.incomplete");
    expect(wordOf({ status: "failed", stop: "error", error: { code: "new", detail: "", retryable: false } })).toBe("transcript.end.failed");
    expect(isCalm({ status: "failed", stop: null, error: null })).toBe(false);
  });
});
