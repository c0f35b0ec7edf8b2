import { expect, test } from "vitest";
import { lengthOf, longestSteering } from "./text-limits";

test("long texts are counted in code points, as the service counts them", () => {
  const birds = "🐦".repeat(longestSteering);
  expect(birds.length).toBe(2 * longestSteering);
  expect(lengthOf(birds)).toBe(longestSteering);
  expect(lengthOf("海".repeat(20_000))).toBe(20_000);
  expect(lengthOf("")).toBe(0);
});
