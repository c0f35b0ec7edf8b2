// Tests of the sidebar, settings, keyboard shortcuts and languages; and of every page against WCAG 2.2 AA in both
// colour schemes. A screenshot of each is written to the folder that PICTURES names.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { colourRules, expectAccessible, expectAccessibleInBothColorSchemes, inBothColorSchemes } from "./axe";
import { composer, intercept, mainHeading, pausedAnswer, sidebar, stored } from "./conversation-page";
import { Account, desktop, phone, sharedAccount, BrowserWindow, withBrowser } from "./harness";

withBrowser();

/** The folder for screenshots of every page; undefined: none are taken. */
const pictures = process.env["PICTURES"];
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });

describe("the sidebar", () => {
  test("26 a title is edited in place; a conversation is deleted, and the deletion can first be undone", async () => {
    const account = await sharedAccount();
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
    const account = await sharedAccount();
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
    const account = await sharedAccount();
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

  test("43 and 44 the account stores the theme, which applies from the first frame, and the language with its direction", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    await chooseThemeWhileStored(visit.page, account);
    await expectThemeFromFirstFrame(visit.page, account);
    await chooseLanguages(visit.page, account);
    await visit.close();
  });
});

const dark = "rgb(24, 23, 22)";
const background = (page: Page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

/** A chosen theme stays while it is being stored, although another device changes other settings. */
async function chooseThemeWhileStored(page: Page, account: Account): Promise<void> {
  const held = await intercept(page, "PUT", "**/account/settings");
  await page.getByRole("radio", { name: "Dark" }).press("Space"); // not check(): the new value is shown later
  await expect.poll(() => held.length).toBe(1);
  await expect.poll(() => background(page)).toBe(dark);

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
  expect(await background(page)).toBe(dark);

  await page.unroute("**/account/settings"); // sends the held request
  await expect
    .poll(() => account.read<Record<string, unknown>>("/account/settings"))
    .toMatchObject({ theme: "dark", send_key: "mod_enter" });
  expect(await background(page)).toBe(dark);
}

async function expectThemeFromFirstFrame(page: Page, account: Account): Promise<void> {
  expect((await account.read<{ theme: string }>("/account/settings")).theme).toBe("dark");
  await page.reload({ waitUntil: "commit" });
  await page.waitForFunction(
    () => document.body !== null && getComputedStyle(document.body).backgroundColor !== "rgba(0, 0, 0, 0)",
  );
  expect(await background(page)).toBe(dark);
}

/** Arabic is shown from right to left, also after a reload, and Japanese from left to right. */
async function chooseLanguages(page: Page, account: Account): Promise<void> {
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
}

/** How each kind of window differs from the one that the test has opened. */
const kinds: Record<string, (page: Page) => Promise<void>> = {
  "1280": () => Promise.resolve(),
  "forced-colours": (page) => page.emulateMedia({ forcedColors: "active" }),
  "zoom-400": async (page) => {
    await page.emulateMedia({ forcedColors: null });
    await page.setViewportSize({ width: 320, height: 256 });
  },
};

describe("every page has no accessibility violation", () => {
  test("on a desktop, with forced colours and at 400 % zoom", async () => {
    const signedOut = await BrowserWindow.open("/");
    for (const [kind, set] of Object.entries(kinds)) {
      await set(signedOut.page);
      await checkSignIn(signedOut.page, kind);
    }
    await signedOut.close();

    const account = await Account.register();
    const paths = await seed(account);
    const visit = await BrowserWindow.open("/", account, { viewport: desktop });
    for (const [kind, set] of Object.entries(kinds)) {
      await set(visit.page);
      await checkPages(visit, paths, kind);
    }
    await visit.close();
  });

  test("on a phone", async () => {
    const options = { viewport: phone, hasTouch: true, isMobile: true };
    const signedOut = await BrowserWindow.open("/", undefined, options);
    await checkSignIn(signedOut.page, "390");
    await signedOut.close();

    const account = await Account.register();
    const paths = await seed(account);
    const visit = await BrowserWindow.open("/", account, options);
    await checkPages(visit, paths, "390");
    await visit.close();
  });
});

interface Paths {
  conversation: string;
  project: string;
}

/** Creates something that every page shows, and a live answer. Returns the addresses of the conversation and the project. */
async function seed(account: Account): Promise<Paths> {
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
  return { conversation: `/c/${conversation}`, project: `/p/${project_id}` };
}

async function checkSignIn(page: Page, kind: string): Promise<void> {
  await page.getByLabel("Email").waitFor();
  await checkPage(page, `sign-in-${kind}`);
  await page.getByRole("button", { name: "Create account" }).click();
  await checkPage(page, `register-${kind}`);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

async function checkPages(visit: BrowserWindow, { conversation, project }: Paths, kind: string): Promise<void> {
  const { page } = visit;
  const open = async (path: string) => {
    await visit.follow(path);
    await mainHeading(page).filter({ hasNotText: "Page not found" }).waitFor();
  };
  await visit.follow("/");
  await composer(page).waitFor();
  await checkPage(page, `start-${kind}`);
  await open(conversation);
  await checkConversation(page, kind);
  await open("/settings");
  await page.getByRole("list", { name: "Shared links" }).waitFor();
  await page.getByRole("table", { name: "Tokens by conversation" }).waitFor();
  await page.getByRole("button", { name: "What was skipped or changed" }).click();
  await checkPage(page, `settings-${kind}`);
  await open("/library");
  await failUpload(page);
  await page.getByRole("list", { name: "Files" }).waitFor();
  await checkPage(page, `library-${kind}`);
  await open(project);
  await checkPage(page, `project-${kind}`);
  await page.goto(new URL("/c/conv_01h2xcejqtf2nbrexx3vqjhp41", page.url()).href);
  await mainHeading(page).waitFor();
  await checkPage(page, `not-found-${kind}`);
}

async function checkConversation(page: Page, kind: string): Promise<void> {
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
  expect(
    await page.locator("[data-scroll]").evaluate((element) => element.clientHeight),
    "height of the transcript",
  ).toBeGreaterThan(120);
  await checkPage(page, `conversation-${kind}`);
  await page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
  await page.getByRole("menuitem", { name: "Share…" }).press("Enter");
  await page.getByRole("list", { name: "Shared links" }).waitFor();
  await page.getByRole("button", { name: "Create link" }).waitFor();
  await checkPage(page, `share-${kind}`);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
  await page.getByRole("menuitem", { name: "Branches…" }).press("Enter");
  await page.getByRole("treeitem").nth(1).waitFor();
  await checkPage(page, `branches-${kind}`);
  await page.keyboard.press("Escape");
  await page.getByRole("treeitem").first().waitFor({ state: "hidden" });
}

/** Uploads an empty file, which is listed as a failure. */
async function failUpload(page: Page): Promise<void> {
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Upload files" }).click(),
  ]);
  await chooser.setFiles({ name: "nothing.txt", mimeType: "text/plain", buffer: Buffer.from("") });
  await page.getByRole("list", { name: "Uploads" }).waitFor();
}

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
