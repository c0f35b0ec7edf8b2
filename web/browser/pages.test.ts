// Tests of the sidebar, settings, keyboard shortcuts and languages; and of every page against WCAG 2.2 AA in both
// colour schemes. A screenshot of each is written to the folder that PICTURES names.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { colourRules, expectAccessible, expectAccessibleInBothColorSchemes, inBothColorSchemes } from "./axe";
import { composer, intercept, mainHeading, pausedAnswer, sidebar, stored } from "./conversation-page";
import { Account, desktop, phone, BrowserWindow, withBrowser } from "./harness";

withBrowser();

/** The folder for screenshots of every page; undefined: none are taken. */
const pictures = process.env["PICTURES"];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });

describe("the sidebar", () => {
  test("26 a title is edited in place; a conversation is deleted, and the deletion can first be undone", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const other = await account.chat("What is 6*7?");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
    await account.request("PUT", `/conversations/${other}/title`, { title: "Sums" });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const list = sidebar(visit.page);
    await list.getByRole("link", { name: /Tides/ }).focus();
    await visit.page.keyboard.press("F2");
    await visit.page.getByRole("textbox", { name: "Title of the conversation" }).fill("Two tides a day");
    await visit.page.keyboard.press("Enter");
    await expect
      .poll(async () => (await account.read<{ title: string }>(`/conversations/${conversation}`)).title)
      .toBe("Two tides a day");

    await list.getByRole("button", { name: "Actions for “Sums”" }).press("Enter");
    await visit.page.getByRole("menuitem", { name: "Delete" }).press("Enter");
    await visit.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await visit.page.getByRole("button", { name: "Undo" }).click();
    await list.getByRole("link", { name: /Sums/ }).waitFor();
    await list.getByRole("button", { name: "Actions for “Sums”" }).press("Enter");
    await visit.page.getByRole("menuitem", { name: "Delete" }).press("Enter");
    await visit.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect
      .poll(() =>
        account.read(`/conversations/${other}`).then(
          () => "there",
          () => "gone",
        ),
      )
      .toBe("gone");
    await visit.close();
  });

  test("27 the sidebar marks conversations with a live answer and with an unread answer", async () => {
    const account = await Account.register();
    const watched = await account.chat("Hello!");
    const { conversation, turn } = await account.startTurn((await pausedAnswer()).text);
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Busy" });
    const visit = await BrowserWindow.open(`/c/${watched}`, account);
    await sidebar(visit.page)
      .getByRole("link", { name: /Busy.*answering/ })
      .waitFor();
    await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn });
    await sidebar(visit.page)
      .getByRole("link", { name: /Busy.*new answer/ })
      .waitFor();
    await visit.close();
  });
});

describe("shortcuts, languages, themes", () => {
  test("41 shortcuts work, are listed, and do not act on typed text", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Write a small function in Go that greets somebody.");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Greeting" });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.locator("[data-message]").last().waitFor();
    await page.keyboard.press("ControlOrMeta+/");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await expectAccessible(page, "the shortcut help");
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

  test("43 Arabic is shown from right to left, Japanese is available, and the account stores the choice", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    await page.getByLabel("Language").selectOption("ar");
    await expect.poll(() => page.evaluate(() => document.documentElement.dir)).toBe("rtl");
    await page.reload();
    expect(await page.evaluate(() => [document.documentElement.dir, document.documentElement.lang])).toEqual([
      "rtl",
      "ar",
    ]);
    await page.locator("select").first().selectOption("ja");
    await expect
      .poll(() => page.evaluate(() => [document.documentElement.dir, document.documentElement.lang]))
      .toEqual(["ltr", "ja"]);
    await expect.poll(async () => (await account.read<{ language: string }>("/account/settings")).language).toBe("ja");
    await visit.close();
  });

  test("44 the chosen theme is stored in the account and applies from the first frame", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    await visit.page.getByRole("radio", { name: "Dark" }).press("Space"); // not check(): the new value is shown later
    const background = () => visit.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await expect.poll(background).toBe("rgb(24, 23, 22)");
    await expect.poll(async () => (await account.read<{ theme: string }>("/account/settings")).theme).toBe("dark");
    await visit.page.reload({ waitUntil: "commit" });
    await visit.page.waitForFunction(
      () => document.body !== null && getComputedStyle(document.body).backgroundColor !== "rgba(0, 0, 0, 0)",
    );
    expect(await background()).toBe("rgb(24, 23, 22)");
    await visit.close();
  });

  test("a chosen theme stays while it is being stored, although another device changes other settings", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const held = await intercept(page, "PUT", "**/account/settings");
    await page.getByRole("radio", { name: "Dark" }).press("Space");
    await expect.poll(() => held.length).toBe(1);
    await expect.poll(background).toBe("rgb(24, 23, 22)");

    const { version: _, ...settings } = await account.read<Record<string, unknown>>("/account/settings");
    const refetched = page.waitForResponse(
      async (response) =>
        response.url().endsWith("/account/settings") &&
        response.request().method() === "GET" &&
        ((await response.json()) as Record<string, unknown>)["send_key"] === "mod_enter",
    );
    await account.request("PUT", "/account/settings", { ...settings, send_key: "mod_enter" });
    await refetched;
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    expect(await background()).toBe("rgb(24, 23, 22)");

    await page.unroute("**/account/settings"); // sends the held request
    await expect
      .poll(() => account.read<Record<string, unknown>>("/account/settings"))
      .toMatchObject({ theme: "dark", send_key: "mod_enter" });
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

describe("every page", () => {
  for (const [kind, options] of Object.entries(windows)) {
    test(`has no accessibility violation: ${kind}`, async () => {
      const signedOut = await BrowserWindow.open("/", undefined, options);
      await signedOut.page.getByLabel("Email").waitFor();
      await checkPage(signedOut.page, `sign-in-${kind}`);
      await signedOut.page.getByRole("button", { name: "Create account" }).click();
      await checkPage(signedOut.page, `register-${kind}`);
      await signedOut.close();

      const account = await Account.register();
      const conversation = await account.chat(
        "Show me. [[script tokens=60 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]",
      );
      await account.chat("Make me a table, and write $e^{i\\pi}$.", { conversation_id: conversation });
      await addBranch(account, conversation);
      await account.startTurn((await pausedAnswer()).text, { conversation_id: conversation });
      await account.request("POST", "/chat", {
        conversation_id: conversation,
        input: [{ type: "text", text: "And this comes next." }],
        if_busy: "queue",
      });
      await account.request("POST", `/conversations/${conversation}/shares`, {});
      await account.request("POST", "/account/imports", [
        { uuid: "1", name: "Winds", chat_messages: [] },
        { uuid: "2", name: "Tides", chat_messages: [{ uuid: "3", sender: "human", text: "Why?" }] },
      ]);
      await account.storeFile("tides.txt");
      const project = await account.request("POST", "/projects", { name: "Coast" });
      const { project_id } = (await project.json()) as { project_id: string };
      const visit = await BrowserWindow.open("/", account, options);
      await composer(visit.page).waitFor();
      await checkPage(visit.page, `start-${kind}`);
      for (const [path, name] of [
        [`/c/${conversation}`, "conversation"],
        ["/settings", "settings"],
        ["/library", "library"],
        [`/p/${project_id}`, "project"],
        ["/c/conv_01h2xcejqtf2nbrexx3vqjhp41", "not-found"],
      ] as const) {
        await visit.page.goto(new URL(path, visit.page.url()).href);
        await mainHeading(visit.page).waitFor();
        if (name === "conversation") {
          await visit.page.getByRole("button", { name: "Stop", exact: true }).waitFor();
          expect(
            await visit.page.locator("[data-scroll]").evaluate((element) => element.clientHeight),
            "height of the transcript",
          ).toBeGreaterThan(120);
        }
        if (name === "library") {
          const [chooser] = await Promise.all([
            visit.page.waitForEvent("filechooser"),
            visit.page.getByRole("button", { name: "Upload files" }).click(),
          ]);
          await chooser.setFiles({ name: "nothing.txt", mimeType: "text/plain", buffer: Buffer.from("") });
          await visit.page.getByRole("list", { name: "Uploads" }).waitFor();
          await visit.page.getByRole("list", { name: "Files" }).waitFor();
        }
        if (name === "settings") {
          await visit.page.getByRole("list", { name: "Shared links" }).waitFor();
          await visit.page.getByRole("table", { name: "Tokens by conversation" }).waitFor();
          await visit.page.getByRole("button", { name: "What was skipped or changed" }).click();
        }
        await checkPage(visit.page, `${name}-${kind}`);
        if (name === "conversation") {
          await visit.page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
          await visit.page.getByRole("menuitem", { name: "Share…" }).press("Enter");
          await visit.page.getByRole("list", { name: "Shared links" }).waitFor();
          await visit.page.getByRole("button", { name: "Create link" }).waitFor();
          await checkPage(visit.page, `share-${kind}`);
          await visit.page.keyboard.press("Escape");
          await visit.page.getByRole("dialog").waitFor({ state: "hidden" });
          await visit.page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
          await visit.page.getByRole("menuitem", { name: "Branches…" }).press("Enter");
          await visit.page.getByRole("treeitem").nth(1).waitFor();
          await checkPage(visit.page, `branches-${kind}`);
        }
      }
      await visit.close();
    });
  }
});

/** Adds a branch that is not the active one. */
async function addBranch(account: Account, conversation: string): Promise<void> {
  const path = `/conversations/${conversation}`;
  const { active_branch_id: branch_id } = await account.read<{ active_branch_id: string }>(path);
  const { message_id } = (await stored(account, conversation)).at(-2)!;
  await account.request("POST", `${path}/branches`, { message_id, mode: "edit", name: "As a list" });
  const { version } = await account.read<{ version: number }>(path);
  await account.request("PUT", `${path}/active-branch`, { branch_id, version });
}

/** Checks the accessibility and the width of the page, and takes a screenshot in each colour scheme if asked for. */
async function checkPage(page: Page, name: string): Promise<void> {
  await page.evaluate(() => document.fonts.ready);
  if (pictures !== undefined)
    await inBothColorSchemes(page, (scheme) => page.screenshot({ path: join(pictures, `${name}-${scheme}.png`) }));
  expect(
    await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
    `${name} is wider than the window`,
  ).toBeLessThanOrEqual(0);
  // Forced colours change nothing but colours of the pages that were checked at 1280 pixels.
  await expectAccessibleInBothColorSchemes(page, name, name.endsWith("forced-colours") ? colourRules : undefined);
}
