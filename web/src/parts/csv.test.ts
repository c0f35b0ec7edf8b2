import { expect, test } from "vitest";
import { csvOf, rowsOf } from "./csv";

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

test("comma-separated values become a table", () => {
  const rows = [
    ["name", "what it says"],
    ["海", "a, b"],
    ['say "no"', "two\nlines"],
    ["", ""],
  ];
  expect(rowsOf(csvOf(rows))).toEqual(rows);
  expect(rowsOf("a,b\nc,d\n")).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  expect(rowsOf("a\n\nb")).toEqual([["a"], [""], ["b"]]);
  expect(rowsOf("a\nb\nc", 2)).toEqual([["a"], ["b"]]);
  expect(rowsOf("")).toEqual([]);
});
