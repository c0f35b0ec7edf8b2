// What a branch without a name is called. Pure.
import { toPlainText } from "../../parts/plain";

/** The most characters of a message in a name. */
const maxLength = 80;

/** Returns the beginning of a message as one line without the marks of Markdown. */
export function beginningOf(preview: string): string {
  const line = toPlainText(preview).replace(/\s+/g, " ").trim();
  const signs = [...line];
  return signs.length > maxLength ? `${signs.slice(0, maxLength).join("").trimEnd()}…` : line;
}

const units = [
  ["year", 365 * 86_400],
  ["month", 30 * 86_400],
  ["week", 7 * 86_400],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/** Returns an age in milliseconds in the largest unit that it fills; below a minute, and in the future, 0 seconds. */
export function ageOf(age: number): [value: number, unit: (typeof units)[number][0] | "second"] {
  const [unit, seconds] = units.find(([, length]) => age >= length * 1_000) ?? ["second" as const, Infinity];
  return [Math.floor(age / 1_000 / seconds) || 0, unit];
}
