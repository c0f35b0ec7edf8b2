import { expect, test } from "vitest";
import { ageOf, beginningOf } from "./branch-name";

test("the name of a branch is the beginning of its first message, as one line without marks", () => {
  expect(beginningOf("# In **metres**?\n\n- one\n- two")).toBe("In metres? - one - two");
  expect(beginningOf("word ".repeat(40))).toBe(`${"word ".repeat(16).trim()}…`);
  expect(beginningOf("👩‍🚀".repeat(40))).not.toContain("\ufffd");
  expect(beginningOf("")).toBe("");
});

test("an age is in the largest unit that it fills", () => {
  const day = 86_400_000;
  expect([0, 59_999, 60_000, 7_199_999, day, 13 * day, 61 * day, 800 * day, -5_000].map(ageOf)).toEqual([
    [0, "second"],
    [0, "second"],
    [1, "minute"],
    [1, "hour"],
    [1, "day"],
    [1, "week"],
    [2, "month"],
    [2, "year"],
    [0, "second"],
  ]);
});
