import { expect, test } from "vitest";
import { outcomeWords } from "./tool-outcome";

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
