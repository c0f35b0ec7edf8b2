import { describe, expect, test } from "vitest";
import type { Message, TurnFinished } from "../../generated/events";
import { endOf, endOfMessage, isExpectedEnd, announcementOf, messageOf } from "./end";

const finished = (status: string, stop_reason: string, code?: string) =>
  endOf({
    status,
    stop_reason,
    error: code === undefined ? null : { code, detail: "", retryable: true },
  } as unknown as TurnFinished);

describe("how an answer ended", () => {
  test("a completed turn is announced as answered, any other by how it ended", () => {
    expect(announcementOf(finished("completed", "end_turn"))).toEqual({ key: "transcript.answered", urgent: false });
    expect(announcementOf(finished("completed", "refusal"))).toEqual({ key: "transcript.answered", urgent: false });
    expect(announcementOf(finished("cancelled", "cancelled"))).toEqual({
      key: "transcript.end.cancelled",
      urgent: false,
    });
    expect(announcementOf(finished("incomplete", "max_tokens"))).toEqual({
      key: "transcript.end.max_tokens",
      urgent: false,
    });
  });

  test("each error that the user can do something about has its own text", () => {
    for (const code of ["model_context_exceeded", "model_rejected", "model_unauthorized", "model_credit_used_up"])
      expect(messageOf(finished("failed", "error", code))).toBe(`transcript.end.${code}`);
  });

  test("the announcement of a failure is urgent", () => {
    expect(announcementOf(finished("failed", "error", "model_unavailable"))).toEqual({
      key: "transcript.end.model_unavailable",
      urgent: true,
    });
    expect(announcementOf(finished("incomplete", "error", "model_rate_limited"))).toEqual({
      key: "transcript.end.model_rate_limited",
      urgent: true,
    });
    expect(announcementOf(finished("incomplete", "deadline"))).toEqual({
      key: "transcript.end.deadline",
      urgent: true,
    });
  });

  test("a message gives the end, but not its reason", () => {
    const ends = (status: string) => endOfMessage({ status } as Message);
    expect(ends("streaming")).toBeNull();
    expect(announcementOf(ends("complete")!)).toEqual({ key: "transcript.answered", urgent: false });
    expect(announcementOf(ends("cancelled")!)).toEqual({ key: "transcript.end.cancelled", urgent: false });
    expect(announcementOf(ends("failed")!)).toEqual({ key: "transcript.end.failed", urgent: true });
    expect(announcementOf(ends("incomplete")!)).toEqual({ key: "transcript.end.incomplete", urgent: true });
  });

  test("an end without a known reason also has a text", () => {
    expect(messageOf({ status: "incomplete", stop: null, error: null })).toBe("transcript.end.incomplete");
    expect(messageOf({ status: "failed", stop: "error", error: { code: "new", detail: "", retryable: false } })).toBe(
      "transcript.end.failed",
    );
    expect(isExpectedEnd({ status: "failed", stop: null, error: null })).toBe(false);
  });
});
