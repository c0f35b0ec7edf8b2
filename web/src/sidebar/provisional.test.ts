import { expect, test } from "vitest";
import { provisionalTitle } from "./provisional";

test("a provisional title has at most sixty characters and ends after a word", () => {
  expect(provisionalTitle("  Hello,\n  world! ")).toBe("Hello, world!");
  expect(provisionalTitle("Plan a vegetable garden for a small balcony that faces north, please")).toBe(
    "Plan a vegetable garden for a small balcony that faces…",
  );
  expect(provisionalTitle("東京".repeat(40))).toBe(`${"東京".repeat(29)}東…`);
  expect(provisionalTitle("🙂".repeat(80))).toBe(`${"🙂".repeat(59)}…`);
  expect(provisionalTitle("Explain ```go\nfunc main() {}```")).toBe("Explain");
});
