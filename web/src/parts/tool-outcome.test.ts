import { expect, test } from "vitest";
import { errorText, outcomeWords } from "./tool-outcome";

test("a call says how it ended, unless it gave a whole result of its own", () => {
  const words = (call: object) =>
    outcomeWords(call as Parameters<typeof outcomeWords>[0]).map((key) => key.replace("transcript.tool.", ""));
  expect(words({ state: "running" })).toEqual([]);
  expect(words({ state: "succeeded", outcome: "ok" })).toEqual([]);
  expect(words({ state: "succeeded" })).toEqual([]);
  expect(words({ state: "succeeded", outcome: "empty" })).toEqual(["empty"]);
  expect(words({ state: "succeeded", outcome: "ok", truncated: true, repeated: true })).toEqual([
    "truncated",
    "repeated",
  ]);
  expect(words({ state: "failed", outcome: "failed" })).toEqual(["failed"]);
  expect(words({ state: "cancelled" })).toEqual(["cancelled"]);
  expect(words({ state: "outcome_unknown", outcome: "unknown" })).toEqual(["outcome_unknown"]);
  expect(words({ state: "rejected", outcome: "denied", approval: { decision: "reject" } })).toEqual(["rejected"]);
  expect(words({ state: "rejected", outcome: "denied", approval: { decision: "expired" } })).toEqual(["expired"]);
});

test("the error of a call is its detail; a rejection has its own text, and so has an error without a detail", () => {
  const text = (detail: string, decision?: "reject" | "approve_once") =>
    errorText({ detail }, decision === undefined ? undefined : { decision }, (key) => key);
  expect(text("The tool failed.")).toBe("The tool failed.");
  expect(text("The tool failed.", "approve_once")).toBe("The tool failed.");
  expect(text("")).toBe("transcript.tool.failed");
  expect(text("The user rejected this call.", "reject")).toBe("transcript.tool.rejected.detail");
});
