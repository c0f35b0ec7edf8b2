// Writes the app's figures into docs/benchmarks.md, between two marks; the rest of the page stays as it is.
import { readFileSync, writeFileSync } from "node:fs";

export interface Figure {
  what: string;
  measured: string;
  budget: string;
  holds: boolean;
}

const page = new URL("../../docs/benchmarks.md", import.meta.url);
const begins = "<!-- The web app: written by make bench-web. -->";
const ends = "<!-- End of the web app's figures. -->";

export function publish(figures: Figure[], heading: string): void {
  const rows = figures.map((f) => `| ${f.what} | ${f.measured} | ${f.budget} | ${f.holds ? "yes" : "**no**"} |`);
  const text = [begins, "", "## The web app", "", heading, "", "| what | measured | budget | holds |", "|---|---|---|---|", ...rows, "", ends].join("\n");
  const before = readFileSync(page, "utf8");
  const from = before.indexOf(begins);
  const to = before.indexOf(ends);
  writeFileSync(page, from < 0 || to < from ? `${before.trimEnd()}\n\n${text}\n` : before.slice(0, from) + text + before.slice(to + ends.length));
  console.log(text);
}

/** The value below which so much of a sorted list lies. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
}
