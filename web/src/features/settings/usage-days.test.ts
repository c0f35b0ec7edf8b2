import { describe, expect, test } from "vitest";
import { firstShownDay, shownDays, tokensByDay, topOf } from "./usage-days";

const group = (key: string, input: number, output: number) => ({
  key,
  turns: 1,
  input_tokens: input,
  output_tokens: output,
  reasoning_tokens: 3,
  cached_input_tokens: 2,
});

describe("the days of the usage chart", () => {
  test("are 30 UTC days that end today", () => {
    expect(firstShownDay(new Date("2026-03-01T23:59:59Z"))).toBe("2026-01-31");
    const days = tokensByDay([], "2026-01-31");
    expect([days.length, days[0]!.day, days.at(-1)!.day]).toEqual([shownDays, "2026-01-31", "2026-03-01"]);
  });

  test("have the tokens of input and output, and 0 without usage", () => {
    const days = tokensByDay([group("2026-02-01", 10, 5)], "2026-01-31");
    expect(days.slice(0, 3).map(({ tokens }) => tokens)).toEqual([0, 15, 0]);
  });

  test("are drawn up to a round number", () => {
    expect([0, 1, 3, 10, 11, 499, 501, 2_000_001].map(topOf)).toEqual([1, 1, 5, 10, 20, 500, 1_000, 5_000_000]);
  });
});
