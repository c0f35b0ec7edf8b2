import { expect, test } from "vitest";
import { dayIn } from "./today";

test("the number of the day increases by one at each midnight, however long the day", () => {
  const dayOf = dayIn("Europe/Berlin");
  const steps = Array.from({ length: 4 * 365 }, (_, at) => dayOf(new Date(Date.UTC(2026, 0, 1, 6 * at))));
  expect(steps.every((day, at) => at === 0 || day === steps[at - 1] || day === steps[at - 1]! + 1)).toBe(true);
});
