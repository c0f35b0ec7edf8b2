import { expect, test } from "vitest";
import { provisionalTitle } from "./provisional";

test("a provisional title has at most the first forty characters of a message and ends after a word", () => {
  expect(provisionalTitle("  Hello,\n  world! ")).toBe("Hello, world!");
  expect(provisionalTitle("Plan a vegetable garden for a small balcony that faces north")).toBe(
    "Plan a vegetable garden for a small…",
  );
  expect(provisionalTitle(`${"x".repeat(39)}, and more`)).toBe(`${"x".repeat(39)}…`);
  expect(provisionalTitle("東京".repeat(30))).toBe(`${"東京".repeat(20)}…`);
  expect(provisionalTitle("🙂".repeat(60))).toBe(`${"🙂".repeat(40)}…`);
});
