// Tests of the design: surfaces, typeface, and what each answer shows about its profile.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { inBothColorSchemes } from "./axe";
import { composer, fast, messages, pausedAnswer, stop, waitForAnswerText } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

/** Returns the contrast between the background of an element and that of the page. */
async function contrastToPage(page: Page, selector: string): Promise<number> {
  return page
    .locator(selector)
    .first()
    .evaluate((element) => {
      const luminance = (color: string) => {
        const [red, green, blue] = color
          .match(/[\d.]+/g)!
          .slice(0, 3)
          .map((value) => Number(value) / 255)
          .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! + 0.05;
      };
      const [one, other] = [getComputedStyle(element), getComputedStyle(document.body)].map((style) =>
        luminance(style.backgroundColor),
      );
      return Math.max(one! / other!, other! / one!);
    });
}

test("14 and 15 the typeface, the surfaces of both themes, and what an answer shows about its profile", async () => {
  const account = await Account.register();
  const code = await account.chat("Write a small function in Go that greets somebody.");
  const visit = await BrowserWindow.open("/robots.txt", account);
  const { page } = visit;
  await expectOneFont(page);
  await openInApp(page, `/c/${code}`);
  await expectDistinctSurfaces(page);
  await expectTypefaceWithoutKerning(page);
  await expectReasonOfProfile(page, account);
  await expectNoReasonOfChosenProfile(page, account);
  await visit.close();
});

/** Loads the app, which ships its typeface, and expects that it loads only the file of the shown letters. */
async function expectOneFont(page: Page): Promise<void> {
  const fonts: string[] = [];
  page.on("request", (request) => request.resourceType() === "font" && fonts.push(request.url()));
  await page.goto(new URL("/", page.url()).href);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.evaluate(() => document.fonts.ready);
  expect(await page.evaluate(() => document.fonts.check('1rem "Atkinson"'))).toBe(true);
  expect(fonts).toHaveLength(1);
  const sent = await page.request.get(fonts[0]!);
  expect(sent.headers()["content-type"]).toBe("font/woff2");
  expect((await sent.body()).length).toBeLessThan(40_000);
}

/** Expects that messages of the user and code stand out from the page in both themes. */
async function expectDistinctSurfaces(page: Page): Promise<void> {
  await page.locator("figure").first().waitFor();
  await inBothColorSchemes(page, async (scheme) => {
    for (const selector of ['[data-kind="question"] .bg-sunken', "figure"])
      expect(await contrastToPage(page, selector), `${selector}, ${scheme}`).toBeGreaterThan(1.14);
  });
}

/** Text of any length has no kerning, whose cost grows with the square of the length. */
async function expectTypefaceWithoutKerning(page: Page): Promise<void> {
  for (const place of [messages(page).last(), composer(page)]) {
    const style = await place.evaluate((element) => {
      const { fontFamily, fontKerning } = getComputedStyle(element);
      return { fontFamily, fontKerning };
    });
    expect(style.fontFamily).toMatch(/^"?Atkinson/);
    expect(style.fontKerning).toBe("none");
  }
}

/** An answer shows its profile and why auto chose it, also on another device and after a reload. */
async function expectReasonOfProfile(page: Page, account: Account): Promise<void> {
  const answer = await pausedAnswer();
  const { conversation } = await account.startTurn(`\`\`\`go\nx := 1\n\`\`\`\n${answer.text}`);
  await openInApp(page, `/c/${conversation}`);
  await waitForAnswerText(page);
  const notice = messages(page).nth(1).getByText("Your message contains code.");
  await notice.waitFor();
  await answer.release();
  await stop(page).waitFor({ state: "hidden" });
  await page.reload();
  await notice.waitFor();
  await messages(page).nth(1).getByRole("group", { name: "Actions for this message" }).getByText("Coding").waitFor();
}

async function expectNoReasonOfChosenProfile(page: Page, account: Account): Promise<void> {
  const conversation = await account.chat(`Hello! ${fast(5)}`, { profile: "deep_reasoning" });
  await openInApp(page, `/c/${conversation}`);
  await messages(page).nth(1).getByText("Deep reasoning").waitFor();
  expect(await messages(page).nth(1).getByText("→").count()).toBe(0);
}
