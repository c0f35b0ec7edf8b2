// Tests of the find bar of a conversation most of whose messages are not loaded.
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessible } from "./axe";
import { atEnd, composer, expectFocus, intercept, refusal } from "./conversation-page";
import { Account, BrowserWindow, phone, url, withBrowser } from "./harness";
import { importConversation } from "./long-conversation";

withBrowser();

/** The messages with needles by their numbers, of 480; the last hundred are loaded. */
const count = 480;
const texts = new Map([
  [1, "The first **needle** is here, and [a need](https://example.org/needle)le."],
  [100, "Über den N\u00c9EDLE, needle."],
  [201, "- `code`\n- and العَرَبِيَّة\n- 東京タワー"],
  [401, "A list:\n\n1. nee**dle**\n2. needle"],
  [474, "The last one: needle."],
]);

const highlighted = (page: Page, name: string) =>
  page.evaluate((key) => [...(CSS.highlights.get(key) ?? [])].map((range) => String(range)), name);
/** Returns whether the current match is in the visible part of the conversation. */
const currentVisible = (page: Page) =>
  page.evaluate(() => {
    const [range] = [...(CSS.highlights.get("find-current") ?? [])] as Range[];
    const view = document.querySelector("[data-scroll]")!.getBoundingClientRect();
    const box = range?.getBoundingClientRect();
    return box !== undefined && box.height > 0 && box.top >= view.top && box.bottom <= view.bottom;
  });
const ticks = (page: Page) =>
  page.locator("[data-tick]").evaluateAll((found) => found.map((one) => Number((one as HTMLElement).dataset["tick"])));

/** A message with every kind of part, and what is found in it: the query, the number of matches, and what is marked. */
const rich = [
  "# Don\u2019t\n\nA line\nthat goes on  \nand \u201cends\u201d. A **bold**word, soft\u00adly, \u039f\u0394\u039f\u03a3, \u2764\ufe0f.",
  "The area $\\pi*r*r$ and\n\n$$\nx_1 + x_2\n$$",
  "| a | b |\n|---|---|\n| cell | needle |\n\n- [x] task\n  - nested needle",
  "<details><summary>More</summary>\n\nAn inner tide.\n\n</details>",
  `\`\`\`js\n${Array.from({ length: 60 }, (_, at) => `const line${at} = ${at};`).join("\n")}\n\`\`\``,
].join("\n\n");
const inRich: readonly (readonly [query: string, count: number, marked: string])[] = [
  ["don't", 1, "Don\u2019t"],
  ['"ends"', 1, "\u201cends\u201d"],
  ["a line that goes on", 1, "A line\nthat goes on"],
  ["boldword", 1, "boldword"],
  ["softly", 1, "soft\u00adly"],
  ["\u03bf\u03b4\u03bf\u03c2", 1, "\u039f\u0394\u039f\u03a3"],
  ["\u2764", 1, "\u2764\ufe0f"],
  ["needle", 2, "needle"],
  ["inner tide", 1, "inner tide"],
  ["const line55 = 55", 1, "const line55 = 55"],
];

interface Opened {
  visit: BrowserWindow;
  page: Page;
  bar: Locator;
  field: Locator;
  shown(text: string, match: string): Promise<void>;
}

async function openLong(): Promise<Opened> {
  const account = await Account.register();
  const all = Array.from({ length: count }, (_, at) => texts.get(at) ?? `Text ${at}.`);
  const conversation = await importConversation(account, "Long", all);
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  await page.goto(`${url}/c/${conversation}`);
  await atEnd(page);
  await composer(page).focus();
  await page.keyboard.press("ControlOrMeta+f");
  const bar = page.getByRole("search", { name: "Find in conversation" });
  const field = bar.getByRole("textbox");
  await expectFocus(field);
  const shown = async (text: string, match: string) => {
    await expect.poll(() => bar.getByRole("status").innerText()).toBe(text);
    await expect.poll(() => highlighted(page, "find-current")).toEqual([match]);
    await expect.poll(() => currentVisible(page)).toBe(true);
  };
  return { visit, page, bar, field, shown };
}

describe("finding text in a long conversation", () => {
  test("18 matches are counted, and reached, in messages that are not loaded too", async () => {
    const { visit, page, bar, field, shown } = await openLong();
    const older: string[] = [];
    page.on("request", (request) => request.url().includes("cursor=") && older.push(request.url()));
    await field.fill("needle");
    await shown("7 of 7", "needle");
    expect(await ticks(page)).toEqual([0, 41, 167, 197]);
    expect(older).toEqual([]);
    await expectAccessible(page, "the find bar");
    await field.press("Enter"); // to the oldest message, whose page is four pages up
    await shown("1 of 7", "needle");
    await expect.poll(() => highlighted(page, "find")).toEqual(["needle", "needle"]);
    await field.press("F3");
    await shown("2 of 7", "needle");
    await field.press("F3");
    await shown("3 of 7", "NÉEDLE");
    await bar.getByRole("button", { name: "Next match" }).press("Enter");
    await shown("4 of 7", "needle");
    await field.press("Shift+Enter");
    await shown("3 of 7", "NÉEDLE");
    expect(await ticks(page)).toEqual([0, 41, 167, 197]); // now that all are loaded
    for (const [query, match] of [
      ["العربية", "العَرَبِيَّة"],
      ["京タ", "京タ"],
    ] as const) {
      await field.fill(query);
      await shown("1 of 1", match);
    }
    await field.fill("no such text");
    await expect.poll(() => bar.getByRole("status").innerText()).toBe("No matches");
    // The same keys again are left to the browser.
    expect(
      await field.evaluate((element) =>
        element.dispatchEvent(
          new KeyboardEvent("keydown", { key: "f", code: "KeyF", ctrlKey: true, bubbles: true, cancelable: true }),
        ),
      ),
    ).toBe(true);
    await field.press("Escape");
    await bar.waitFor({ state: "hidden" });
    await expectFocus(composer(page));
    expect(await page.evaluate(() => CSS.highlights.size)).toBe(0);
    await visit.close();
  });

  test("18 a click on a mark next to the scroll bar goes to its match, on a phone too", async () => {
    const { visit, page, field, shown } = await openLong();
    await field.fill("needle");
    await shown("7 of 7", "needle");
    await page.locator('[data-tick="41"]').click();
    await shown("3 of 7", "NÉEDLE");
    await page.setViewportSize(phone);
    await page.locator('[data-tick="167"]').click();
    await shown("5 of 7", "needle");
    await visit.close();
  });

  test("18 matches in tables, formulas, closed sections and folded code are counted as they are marked, and shown", async () => {
    const account = await Account.register();
    const before = Array.from({ length: 220 }, (_, at) => `Text ${at}.`);
    const long = Array.from({ length: 60 }, (_, at) => `Row ${at}.`).join("\n");
    const conversation = await importConversation(account, "Rich", [...before, long, rich]);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await atEnd(page);
    await page.keyboard.press("ControlOrMeta+f");
    const bar = page.getByRole("search", { name: "Find in conversation" });
    const field = bar.getByRole("textbox");
    const expectFound = async (query: string, count: number, marked: string) => {
      await field.fill(query);
      await expect
        .poll(() => bar.getByRole("status").innerText(), { message: query })
        .toMatch(new RegExp(`^\\d+ of ${count}$`));
      await expect.poll(() => highlighted(page, "find-current"), { message: query }).toEqual([marked]);
      await expect.poll(() => currentVisible(page), { message: query }).toBe(true);
      expect((await highlighted(page, "find")).length, query).toBe(count);
    };
    for (const [query, count, marked] of inRich) await expectFound(query, count, marked);
    await expectAccessible(page, "every kind of part");
    await expectFound("row 55", 1, "Row 55"); // in the folded message of the user
    // A formula is found as it is written, and marked as a whole.
    for (const [query, start] of [
      ["\\pi*r", "π"],
      ["x_1 +", "x1"],
    ] as const) {
      await field.fill(query);
      await expect.poll(() => bar.getByRole("status").innerText()).toBe("1 of 1");
      await expect.poll(async () => (await highlighted(page, "find-current"))[0]?.slice(0, start.length)).toBe(start);
    }
    await visit.close();
  });

  test("18 a search that fails says so, keeps the matches of the loaded messages, and is repeated on request", async () => {
    const { visit, page, bar, field, shown } = await openLong();
    const searches = await intercept(page, "GET", /\/find\?/);
    await field.fill("needle");
    await expect.poll(() => bar.getByRole("status").innerText()).toBe("Searching…");
    await expect.poll(() => searches.length).toBe(1);
    await searches[0]!.fulfill(refusal(429, "rate_limited"));
    await bar.getByText("Couldn't search the older messages.").waitFor();
    await shown("3 of 3", "needle");
    await bar.getByRole("button", { name: "Try again" }).press("Enter");
    await expectFocus(field);
    await expect.poll(() => searches.length).toBe(2);
    await searches[1]!.continue();
    await shown("7 of 7", "needle");
    await visit.close();
  });
});
