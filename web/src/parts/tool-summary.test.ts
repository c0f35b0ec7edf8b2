import { expect, test } from "vitest";
import { summaryOf } from "./tool-summary";

test("a call of an artifact shows its title", () => {
  const of = (input: unknown, output?: string) =>
    summaryOf({ kind: "artifact", input, ...(output === undefined ? {} : { output }) } as Parameters<
      typeof summaryOf
    >[0]);
  expect(of({ kind: "document", title: " The harbour ", content: "x".repeat(500) })).toBe("The harbour");
  expect(of({ artifact_id: "art_1", base_version: 1, content: "x" })).toBe("");
  expect(of({ artifact_id: "art_1" })).toBe("");
  const read =
    '<artifact id="art_1" kind="code" title="Say \\"ahoy\\" <now> = 1" version="2" by="assistant">\ntitle="no"';
  expect(of({ artifact_id: "art_1" }, read)).toBe('Say "ahoy" <now> = 1');
  expect(of({ artifact_id: "art_1" }, '<artifact id="art_1" title="a\\x01b">')).toBe("a\\x01b");
  expect(of({}, 'art_1: code, version 1 by the user, 3 bytes, title="x"')).toBe("");
});

test("another call shows the values of its arguments", () => {
  const of = (input: unknown) => summaryOf({ kind: "compute", input } as Parameters<typeof summaryOf>[0]);
  expect(of({ expression: "6*7" })).toBe("6*7");
  expect(of({ query: "tides", limit: 3 })).toBe("tides · 3");
  expect([of(undefined), of({}), of(7), of("x".repeat(200)).length]).toEqual(["", "", "7", 120]);
});
