import { expect, test } from "vitest";
import { csvOf } from "./csv";

test("a table becomes comma-separated values", () => {
  expect(
    csvOf([
      ["name", "what it says"],
      ["海", "a, b"],
      ['say "no"', "two\nlines"],
      ["", " spaced "],
    ]),
  ).toBe('name,what it says\r\n海,"a, b"\r\n"say ""no""","two\nlines"\r\n," spaced "');
  expect(csvOf([])).toBe("");
});
