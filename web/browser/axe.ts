// Looks for what keeps people out: WCAG 2.2 AA by axe, contrast that cannot be computed included.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Node {
  target: string[];
  failureSummary?: string;
  any: { message: string; data?: { messageKey?: string } }[];
}

interface Found {
  id: string;
  nodes: Node[];
}

interface Colour {
  alpha: number;
  parseString(text: string): Colour;
}

interface Axe {
  run(options: object): Promise<{ violations: Found[]; incomplete: Found[] }>;
  commons: { color: { Color: new () => Colour; getContrast(ground: Colour, text: Colour): number } };
}

const everything = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
// What of it the colours decide; the rest is the same in every look.
const colours = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

/** Nothing is wrong with the page, and nothing about its contrasts is in doubt. */
export async function expectAccessible(page: Page, what: string, rules: object = everything): Promise<void> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  const { violations, incomplete } = await page.evaluate(async (runOnly) => {
    const { axe } = window as unknown as { axe: Axe };
    const { violations, incomplete } = await axe.run({ runOnly, resultTypes: ["violations", "incomplete"] });
    // Looking through a dialog at the room behind it, axe finds another ground at each line of a text, and gives up. The
    // ground is what the text lies on.
    const { Color, getContrast } = axe.commons.color;
    const colour = (text: string) => new Color().parseString(text);
    const ground = (element: Element): Colour => {
      const own = colour(getComputedStyle(element).backgroundColor);
      return own.alpha === 1 || element.parentElement === null ? own : ground(element.parentElement);
    };
    const decided = ({ target, any }: Node) => {
      const element = document.querySelector(target[0]!);
      if (any[0]?.data?.messageKey !== "elmPartiallyObscuring" || element === null || element.closest('[role="dialog"]') === null) return false;
      return getContrast(ground(element), colour(getComputedStyle(element).color)) >= 4.5;
    };
    return { violations, incomplete: incomplete.map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => !decided(node)) })) };
  }, rules);
  const told = (list: Found[]) => list.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target.join(" ")} (${node.any[0]?.message ?? node.failureSummary ?? ""})`).join("; ")}`);
  expect(told(violations), `${what}: violations`).toEqual([]);
  expect(told(incomplete.filter((one) => one.id === "color-contrast" && one.nodes.length > 0)), `${what}: contrasts in doubt`).toEqual([]);
}

/** Shows the page in the light and in the dark look. */
export async function inBothLooks(page: Page, see: (look: "light" | "dark") => Promise<unknown>): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Who wants less motion has the look at once; only what moved before that was known comes to its end.
    const moving = await page.evaluate(async () => {
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      const transitions = () => document.getAnimations().filter((one) => one instanceof CSSTransition);
      await Promise.allSettled(transitions().map(({ finished }) => finished));
      return transitions().length;
    });
    expect(moving, "transitions").toBe(0);
    await see(colorScheme);
  }
}

/** Nothing is wrong with the page, in either look. */
export async function expectAccessibleInBothLooks(page: Page, what: string): Promise<void> {
  await inBothLooks(page, (look) => expectAccessible(page, `${what}, ${look}`, look === "dark" ? colours : everything));
}
