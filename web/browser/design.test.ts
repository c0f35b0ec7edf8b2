// Tests of the design: surfaces, typeface, and what each answer shows about its profile.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { composer, fast, messages, pausedAnswer, stop, waitForAnswerText } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

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

describe("surfaces", () => {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`14 messages of the user and code stand out from the page in the ${colorScheme} theme`, async () => {
      const account = await Account.register();
      const conversation = await account.chat("Write a small function in Go that greets somebody.");
      const visit = await BrowserWindow.open(`/c/${conversation}`, account, { colorScheme });
      await visit.page.locator("figure").first().waitFor();
      for (const selector of ['[data-kind="question"] .bg-sunken', "figure"])
        expect(await contrastToPage(visit.page, selector), selector).toBeGreaterThan(1.14);
      await visit.close();
    });
  }

  test("the app ships its typeface, and loads only the file of the shown letters", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/robots.txt", account);
    const fonts: string[] = [];
    visit.page.on("request", (request) => request.resourceType() === "font" && fonts.push(request.url()));
    await visit.page.goto(new URL("/", visit.page.url()).href);
    await visit.page.getByRole("heading", { level: 1 }).waitFor();
    await visit.page.evaluate(() => document.fonts.ready);
    expect(await visit.page.evaluate(() => document.fonts.check('1rem "Atkinson"'))).toBe(true);
    expect(fonts).toHaveLength(1);
    const sent = await visit.page.request.get(fonts[0]!);
    expect(sent.headers()["content-type"]).toBe("font/woff2");
    expect((await sent.body()).length).toBeLessThan(40_000);
    await visit.close();
  });
});

test("text of any length has the typeface and no kerning, whose cost grows with the square of the length", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open(`/c/${await account.chat("Hello!")}`, account);
  for (const place of [messages(visit.page).last(), composer(visit.page)]) {
    const style = await place.evaluate((element) => {
      const { fontFamily, fontKerning } = getComputedStyle(element);
      return { fontFamily, fontKerning };
    });
    expect(style.fontFamily).toMatch(/^"?Atkinson/);
    expect(style.fontKerning).toBe("none");
  }
  await visit.close();
});

describe("the profile of an answer", () => {
  test("15 an answer shows its profile and why auto chose it, also on another device and after a reload", async () => {
    const account = await Account.register();
    const answer = await pausedAnswer();
    const { conversation } = await account.startTurn(`\`\`\`go\nx := 1\n\`\`\`\n${answer.text}`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await waitForAnswerText(visit.page);
    const notice = messages(visit.page).nth(1).getByText("Your message contains code.");
    await notice.waitFor();
    await answer.release();
    await stop(visit.page).waitFor({ state: "hidden" });
    await visit.page.reload();
    await notice.waitFor();
    await messages(visit.page)
      .nth(1)
      .getByRole("group", { name: "Actions for this message" })
      .getByText("Coding")
      .waitFor();
    await visit.close();
  });

  test("15 an answer with a profile that the user chose has no notice", async () => {
    const account = await Account.register();
    const conversation = await account.chat(`Hello! ${fast(5)}`, { profile: "deep_reasoning" });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await messages(visit.page).nth(1).getByText("Deep reasoning").waitFor();
    expect(await messages(visit.page).nth(1).getByText("→").count()).toBe(0);
    await visit.close();
  });
});
