// Writes the app's figures into docs/benchmarks.md, between two markers; the rest of the page does not change.
import { readFileSync, writeFileSync } from "node:fs";

export interface Figure {
  what: string;
  measured: string;
  budget: string;
  holds: boolean;
}

const page = new URL("../../docs/benchmarks.md", import.meta.url);
const startMarker = "<!-- The web app: written by make bench-web. -->";
const endMarker = "<!-- End of the web app's figures. -->";

export function publish(figures: Figure[], heading: string): void {
  const rows = figures.map((f) => `| ${f.what} | ${f.measured} | ${f.budget} | ${f.holds ? "yes" : "**no**"} |`);
  const text = [
    startMarker,
    "",
    "## The web app",
    "",
    heading,
    "",
    "| what | measured | budget | holds |",
    "|---|---|---|---|",
    ...rows,
    "",
    endMarker,
  ].join("\n");
  const before = readFileSync(page, "utf8");
  const from = before.indexOf(startMarker);
  const to = before.indexOf(endMarker);
  writeFileSync(
    page,
    from < 0 || to < from
      ? `${before.trimEnd()}\n\n${text}\n`
      : before.slice(0, from) + text + before.slice(to + endMarker.length),
  );
  console.log(text);
}

/** Returns the q-quantile of the values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
}
