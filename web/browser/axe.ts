// Looks for what keeps people out: WCAG 2.2 AA by axe, contrast that cannot be computed included.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Found {
  id: string;
  nodes: { target: string[]; failureSummary?: string; any: { message: string }[] }[];
}

/** Nothing is wrong with the page, and nothing about its contrasts is in doubt. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(source);
  const { violations, incomplete } = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(options: object): Promise<{ violations: Found[]; incomplete: Found[] }> } };
    return axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
  });
  const told = (list: Found[]) => list.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target.join(" ")} (${node.any[0]?.message ?? node.failureSummary ?? ""})`).join("; ")}`);
  expect(told(violations), `${what}: violations`).toEqual([]);
  expect(told(incomplete.filter((one) => one.id === "color-contrast")), `${what}: contrasts in doubt`).toEqual([]);
}
