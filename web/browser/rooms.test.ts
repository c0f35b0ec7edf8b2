// The rooms around a conversation: the sidebar, settings, keys, languages; and every page held to WCAG 2.2 AA
// in every look. Pictures of each are kept for whoever wants to see them.
import { mkdirSync } from "node:fs";
import type { BrowserContextOptions, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessible, expectAccessibleInBothLooks, inBothLooks } from "./axe";
import { composer, held, sidebar } from "./room";
import { Account, desktop, phone, Visit, withBrowser } from "./site";

withBrowser();

const pictures = new URL("../../tmp/pictures/", import.meta.url).pathname;
mkdirSync(pictures, { recursive: true });


describe("the sidebar", () => {
  test("26 a title is changed in place, and a conversation deleted, with a way back first", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const other = await account.chat("What is 6*7?");
    await account.ask("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
    await account.ask("PUT", `/conversations/${other}/title`, { title: "Sums" });
    const visit = await Visit.open(`/c/${conversation}`, account);
    const list = sidebar(visit.page);
    await list.getByRole("link", { name: /Tides/ }).focus();
    await visit.page.keyboard.press("F2");
    await visit.page.getByRole("textbox", { name: "Title of the conversation" }).fill("Two tides a day");
    await visit.page.keyboard.press("Enter");
    await expect.poll(async () => (await account.read<{ title: string }>(`/conversations/${conversation}`)).title).toBe("Two tides a day");

    await list.getByRole("button", { name: "Actions for “Sums”" }).press("Enter");
    await visit.page.getByRole("menuitem", { name: "Delete" }).press("Enter");
    await visit.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await visit.page.getByRole("button", { name: "Undo" }).click();
    await list.getByRole("link", { name: /Sums/ }).waitFor();
    await list.getByRole("button", { name: "Actions for “Sums”" }).press("Enter");
    await visit.page.getByRole("menuitem", { name: "Delete" }).press("Enter");
    await visit.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => account.read(`/conversations/${other}`).then(() => "there", () => "gone"), { timeout: 20_000 }).toBe("gone");
    await visit.close();
  });

  test("27 a conversation that is answering says so, and one that was answered unseen too", async () => {
    const account = await Account.register();
    const watched = await account.chat("Hello!");
    const { conversation, turn } = await account.begin((await held()).text);
    await account.ask("PUT", `/conversations/${conversation}/title`, { title: "Busy" });
    const visit = await Visit.open(`/c/${watched}`, account);
    await sidebar(visit.page).getByRole("link", { name: /Busy.*answering/ }).waitFor();
    await account.ask("POST", "/chat/steering", { type: "cancel", turn_id: turn });
    await sidebar(visit.page).getByRole("link", { name: /Busy.*new answer/ }).waitFor({ timeout: 40_000 });
    await visit.close();
  });
});

describe("keys, languages, looks", () => {
  test("41 shortcuts work, are listed, and leave what is typed alone", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Write a small function in Go that greets somebody.");
    await account.ask("PUT", `/conversations/${conversation}/title`, { title: "Greeting" });
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.locator("[data-message]").last().waitFor();
    await page.keyboard.press("ControlOrMeta+/");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await expectAccessible(page, "the sheet of shortcuts");
    await page.keyboard.press("Escape");
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("combobox").fill("Greet");
    await page.getByRole("option", { name: /Greeting/ }).waitFor();
    await expectAccessible(page, "the palette");
    await page.keyboard.press("Escape");
    await page.keyboard.press("ControlOrMeta+Shift+s");
    await sidebar(page).waitFor({ state: "hidden" });
    await page.keyboard.press("ControlOrMeta+Shift+s");
    await sidebar(page).waitFor();
    await composer(page).fill("");
    await composer(page).press("j");
    expect(await composer(page).inputValue()).toBe("j");
    await composer(page).fill("");
    await composer(page).press("ArrowUp");
    await page.locator("[data-message]").first().getByRole("textbox").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("ControlOrMeta+Shift+o");
    await page.waitForURL((to) => to.pathname === "/");
    await visit.close();
  });

  test("43 Arabic is written from right to left, Japanese is spoken, and the choice is the account's", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/settings", account);
    const { page } = visit;
    await page.getByLabel("Language").selectOption("ar");
    await expect.poll(() => page.evaluate(() => document.documentElement.dir)).toBe("rtl");
    await page.reload();
    expect(await page.evaluate(() => [document.documentElement.dir, document.documentElement.lang])).toEqual(["rtl", "ar"]);
    await page.locator("select").first().selectOption("ja");
    await expect.poll(() => page.evaluate(() => [document.documentElement.dir, document.documentElement.lang])).toEqual(["ltr", "ja"]);
    await expect.poll(async () => (await account.read<{ language: string }>("/account/settings")).language).toBe("ja");
    await visit.close();
  });

  test("44 the theme is chosen and there from the first frame", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/settings", account);
    await visit.page.getByRole("radio", { name: "Dark" }).press("Space"); // it shows what is stored, a moment later
    const background = () => visit.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await expect.poll(background).toBe("rgb(24, 23, 22)");
    await expect.poll(async () => (await account.read<{ theme: string }>("/account/settings")).theme).toBe("dark");
    await visit.page.reload({ waitUntil: "commit" });
    await visit.page.waitForFunction(() => document.body !== null && getComputedStyle(document.body).backgroundColor !== "rgba(0, 0, 0, 0)");
    expect(await background()).toBe("rgb(24, 23, 22)");
    await visit.close();
  });
});

const windows: Record<string, BrowserContextOptions> = {
  "1280": { viewport: desktop },
  "390": { viewport: phone, hasTouch: true, isMobile: true },
  "forced-colours": { forcedColors: "active" },
  "zoom-400": { viewport: { width: 320, height: 256 } },
};

describe("every page, for everybody", () => {
  for (const [kind, options] of Object.entries(windows)) {
    test(`axe finds nothing: ${kind}`, async () => {
      const stranger = await Visit.open("/", undefined, options);
      await stranger.page.getByLabel("E-mail").waitFor();
      await shown(stranger.page, `sign-in-${kind}`);
      await stranger.page.getByRole("button", { name: "Create an account" }).click();
      await shown(stranger.page, `register-${kind}`);
      await stranger.close();

      const account = await Account.register();
      const conversation = await account.chat("Show me. [[script tokens=60 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]");
      await account.chat("Make me a table, and write $e^{i\\pi}$.", { conversation_id: conversation });
      await account.begin((await held()).text, { conversation_id: conversation });
      await account.ask("POST", "/chat", { conversation_id: conversation, input: [{ type: "text", text: "And this comes next." }], if_busy: "queue" });
      const visit = await Visit.open("/", account, options);
      await composer(visit.page).waitFor();
      await shown(visit.page, `start-${kind}`);
      for (const [path, name] of [
        [`/c/${conversation}`, "conversation"],
        ["/settings", "settings"],
        ["/c/conv_01h2xcejqtf2nbrexx3vqjhp41", "not-found"],
      ] as const) {
        await visit.page.goto(new URL(path, visit.page.url()).href);
        await visit.page.getByRole("heading", { level: 1 }).waitFor();
        if (name === "conversation") {
          await visit.page.getByRole("button", { name: "Stop", exact: true }).waitFor();
          expect(await visit.page.locator("[data-scroll]").evaluate((element) => element.clientHeight), "room to read in").toBeGreaterThan(120);
        }
        await shown(visit.page, `${name}-${kind}`);
      }
      await visit.close();
    });
  }
});

/** Takes a picture in each look, then looks for what is wrong; nothing may stand outside of the window. */
async function shown(page: Page, name: string): Promise<void> {
  await page.evaluate(() => document.fonts.ready);
  await inBothLooks(page, (look) => page.screenshot({ path: `${pictures}${name}-${look}.png` }));
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${name} is wider than the window`).toBeLessThanOrEqual(0);
  await expectAccessibleInBothLooks(page, name);
}
