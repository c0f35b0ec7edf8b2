import { expect, test } from "vitest";
import { maxSteeringInput } from "../../generated/limits";
import { lengthOf } from "./text-limits";

test("long texts are counted in code points, as the service counts them", () => {
  const birds = "🐦".repeat(maxSteeringInput);
  expect(birds.length).toBe(2 * maxSteeringInput);
  expect(lengthOf(birds)).toBe(maxSteeringInput);
  expect(lengthOf("海".repeat(20_000))).toBe(20_000);
  expect(lengthOf("")).toBe(0);
});
