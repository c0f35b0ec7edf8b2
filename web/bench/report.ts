// Writes the app's figures into sections of docs/benchmarks.md; the rest of the page does not change.
import { readFileSync, writeFileSync } from "node:fs";

export interface Figure {
  what: string;
  measured: string;
  budget: string;
  holds: boolean;
}

const page = new URL("../../docs/benchmarks.md", import.meta.url);

/** A section of the page, between two comments. */
export interface Section {
  title: string;
  start: string;
  end: string;
}

export const app: Section = {
  title: "The web app",
  start: "<!-- The web app: written by make bench-web. -->",
  end: "<!-- End of the web app's figures. -->",
};

export const list: Section = {
  title: "The web app's list of conversations",
  start: "<!-- The web app's list of conversations: written by make bench-web. -->",
  end: "<!-- End of the figures of the list of conversations. -->",
};

export const devices: Section = {
  title: "The web app: changes of another browser",
  start: "<!-- The web app's changes of another browser: written by make bench-web. -->",
  end: "<!-- End of the figures of changes of another browser. -->",
};

export function publish({ title, start, end }: Section, figures: Figure[], heading: string): void {
  const rows = figures.map((f) => `| ${f.what} | ${f.measured} | ${f.budget} | ${f.holds ? "yes" : "**no**"} |`);
  const text = [
    start,
    "",
    `## ${title}`,
    "",
    heading,
    "",
    "| what | measured | budget | holds |",
    "|---|---|---|---|",
    ...rows,
    "",
    end,
  ].join("\n");
  const before = readFileSync(page, "utf8");
  const from = before.indexOf(start);
  const to = before.indexOf(end);
  writeFileSync(
    page,
    from < 0 || to < from
      ? `${before.trimEnd()}\n\n${text}\n`
      : before.slice(0, from) + text + before.slice(to + end.length),
  );
  console.log(text);
}

/** Returns the q-quantile of the values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
}
