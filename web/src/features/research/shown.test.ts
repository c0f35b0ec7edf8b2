import { expect, test } from "vitest";
import { shownSource, shownStep } from "./shown";

test("after the end of a task, no step runs and no source is being read", () => {
  expect(shownStep("running", true)).toBe("running");
  expect(shownStep("running", false)).toBe("stopped");
  expect(shownSource("reading", true)).toBe("reading");
  expect(shownSource("reading", false)).toBe("left");
  expect(shownSource("found", false)).toBe("left");
  expect(shownSource("read", true)).toBe("read");
  expect(shownSource("read", false)).toBe("left");
});

test("what ended before the task stays as it was", () => {
  for (const state of ["open", "done", "struck", "skipped"] as const) expect(shownStep(state, false)).toBe(state);
  for (const state of ["kept", "unused", "failed", "merged"] as const) expect(shownSource(state, false)).toBe(state);
});
