// Accessibility checks: WCAG 2.2 AA with axe-core. A contrast that axe cannot compute counts as a failure.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { desktop, phone } from "./harness";

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
  commons: { color: { Color: new () => Colour; getContrast(background: Colour, text: Colour): number } };
}

const allRules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** The rules that depend on colours; the other rules give the same result in every colour scheme. */
export const colourRules: object = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

/** Expects no violation on the page and no contrast that could not be decided. */
export async function expectAccessible(page: Page, what: string, rules: object = allRules): Promise<void> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  const { violations, incomplete } = await page.evaluate(async (runOnly) => {
    const { axe } = window as unknown as { axe: Axe };
    const { violations, incomplete } = await axe.run({ runOnly, resultTypes: ["violations", "incomplete"] });
    // For text in a dialog, axe also finds the background of the page behind it and reports the contrast as undecided.
    // The background is that of the nearest opaque ancestor of the text.
    const { Color, getContrast } = axe.commons.color;
    const colour = (text: string) => new Color().parseString(text);
    const backgroundOf = (element: Element): Colour => {
      const own = colour(getComputedStyle(element).backgroundColor);
      return own.alpha === 1 || element.parentElement === null ? own : backgroundOf(element.parentElement);
    };
    const decided = ({ target, any }: Node) => {
      const element = document.querySelector(target[0]!);
      if (
        any[0]?.data?.messageKey !== "elmPartiallyObscuring" ||
        element === null ||
        element.closest('[role="dialog"]') === null
      )
        return false;
      return getContrast(backgroundOf(element), colour(getComputedStyle(element).color)) >= 4.5;
    };
    return {
      violations,
      incomplete: incomplete.map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => !decided(node)) })),
    };
  }, rules);
  const summaries = (list: Found[]) =>
    list.map(
      (one) =>
        `${one.id}: ${one.nodes.map((node) => `${node.target.join(" ")} (${node.any[0]?.message ?? node.failureSummary ?? ""})`).join("; ")}`,
    );
  expect(summaries(violations), `${what}: violations`).toEqual([]);
  expect(
    summaries(incomplete.filter((one) => one.id === "color-contrast" && one.nodes.length > 0)),
    `${what}: undecided contrasts`,
  ).toEqual([]);
}

/** Calls check with the page in the light and in the dark colour scheme. */
export async function inBothColorSchemes(
  page: Page,
  check: (scheme: "light" | "dark") => Promise<unknown>,
): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // With reduced motion the colours change at once; only transitions that were already running have to end.
    const moving = await page.evaluate(async () => {
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      const transitions = () => document.getAnimations().filter((one) => one instanceof CSSTransition);
      await Promise.allSettled(transitions().map(({ finished }) => finished));
      return transitions().length;
    });
    expect(moving, "transitions").toBe(0);
    await check(colorScheme);
  }
}

/** Expects no violation on the page in either colour scheme. */
export async function expectAccessibleInBothColorSchemes(
  page: Page,
  what: string,
  rules: object = allRules,
): Promise<void> {
  await inBothColorSchemes(page, (scheme) =>
    expectAccessible(page, `${what}, ${scheme}`, scheme === "dark" ? colourRules : rules),
  );
}

/** Expects that the page fits the width of a desktop and of a phone without a violation in either colour scheme. */
export async function expectAccessibleOnDesktopAndPhone(page: Page, what: string): Promise<void> {
  for (const [kind, viewport] of Object.entries({ phone, desktop })) {
    await page.setViewportSize(viewport);
    await expectAccessibleInBothColorSchemes(page, `${what}, on a ${kind}`);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wider, `${what} is wider than a ${kind}`).toBeLessThanOrEqual(0);
  }
}
