// The days of the usage chart, in UTC as the service counts them. Pure.
import type { UsageGroup } from "../../api/usage";

/** The number of days that the chart shows, today included. */
export const shownDays = 30;

const dayLength = 24 * 60 * 60_000;

/** The tokens of a group, input and output together. Those of reasoning are output, and cached ones are input. */
export const tokensOf = (group: UsageGroup): number => group.input_tokens + group.output_tokens;

/** Returns the first of the shown days, for example `2026-01-31`. */
export const firstShownDay = (now: Date): string => dayAfter(now, 1 - shownDays);

const dayAfter = (start: Date, days: number): string =>
  new Date(start.getTime() + days * dayLength).toISOString().slice(0, 10);

/** Returns the tokens of each shown day, oldest first. The service leaves out the days without usage. */
export function tokensByDay(groups: readonly UsageGroup[], from: string): { day: string; tokens: number }[] {
  const known = new Map(groups.map((group) => [group.key, tokensOf(group)]));
  return Array.from({ length: shownDays }, (_, index) => {
    const day = dayAfter(new Date(from), index);
    return { day, tokens: known.get(day) ?? 0 };
  });
}

/** Returns the smallest of 1, 2, 5, 10, 20, 50, … that is not less than the largest value: the top of the chart. */
export function topOf(largest: number): number {
  for (let power = 1; ; power *= 10) for (const step of [1, 2, 5]) if (step * power >= largest) return step * power;
}
