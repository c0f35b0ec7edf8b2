// Tests of temporary chats: they are created by a button of the new chat, show when they are erased, and appear in no list.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { textFile } from "./chosen-file";
import { composer, expectFocus, fast, intercept, messages, send, sidebar, waitForAnswerEnd } from "./conversation-page";
import { Account, BrowserWindow, sharedAccount, url, withBrowser } from "./harness";

withBrowser();

interface Stored {
  temporary: boolean;
  expires_at?: string;
  last_activity_at: string;
  draft: { content: string };
}

const toggle = (page: Page) => page.getByRole("button", { name: "Temporary conversation" });
const notice = (page: Page) => page.getByRole("status").getByText("Erased 24 hours after the last message.");
const badge = (page: Page) => page.getByRole("main").getByText(/^Temporary, erased \w+/);
const rows = (page: Page) => sidebar(page).locator("a[data-conversation]");
const isPressed = (page: Page) => toggle(page).getAttribute("aria-pressed");

/** Opens a new chat of the account of this file, whose list is empty. */
async function openStart(): Promise<{ account: Account; visit: BrowserWindow; page: Page }> {
  const account = await sharedAccount();
  const { data } = await account.read<{ data: { conversation_id: string }[] }>("/conversations");
  for (const { conversation_id } of data) await account.request("DELETE", `/conversations/${conversation_id}`);
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  await composer(page).waitFor();
  await expect.poll(() => rows(page).count()).toBe(0);
  return { account, visit, page };
}

/** Returns the conversation of the address, once the page has one. */
async function opened(page: Page): Promise<string> {
  await page.waitForURL("**/c/conv_*");
  return new URL(page.url()).pathname.slice("/c/".length);
}

const read = (account: Account, conversation: string) => account.read<Stored>(`/conversations/${conversation}`);

async function newTemporaryChat(page: Page): Promise<void> {
  await toggle(page).press("Enter");
  await notice(page).waitFor();
  expect(await isPressed(page)).toBe("true");
}

describe("temporary chats", () => {
  test("35 a message in a temporary chat creates a temporary conversation, which no list shows", async () => {
    const { account, visit, page } = await openStart();
    await newTemporaryChat(page);
    await send(page, `Which tide is this? ${fast(5)}`);
    const conversation = await opened(page);
    await badge(page).waitFor();
    await messages(page).nth(1).waitFor();
    await waitForAnswerEnd(page);
    const stored = await read(account, conversation);
    expect(stored.temporary).toBe(true);
    expect(Date.parse(stored.expires_at!) - Date.parse(stored.last_activity_at)).toBe(24 * 3_600_000);
    // The feed has announced the temporary conversation before this one.
    await account.request("POST", "/conversations", { title: "Charts" });
    await expect.poll(() => rows(page).allInnerTexts()).toEqual(["Charts"]);
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("dialog", { name: "Search and commands" });
    await palette.getByRole("option", { name: "Charts" }).waitFor();
    expect(await palette.getByRole("option", { name: "Which tide is this?" }).count()).toBe(0);
    await page.keyboard.press("Escape");
    await page.reload();
    await badge(page).waitFor();
    await expect.poll(() => rows(page).allInnerTexts()).toEqual(["Charts"]);
    await visit.close();
  });

  test("35 a draft in a temporary chat is stored with a temporary conversation", async () => {
    const { account, visit, page } = await openStart();
    await newTemporaryChat(page);
    await composer(page).fill("Not for long");
    const conversation = await opened(page);
    await badge(page).waitFor();
    await expectFocus(composer(page));
    expect(await read(account, conversation)).toMatchObject({ temporary: true, draft: { content: "Not for long" } });
    expect(await rows(page).count()).toBe(0);
    await page.reload();
    await badge(page).waitFor();
    await expect.poll(() => composer(page).inputValue()).toBe("Not for long");
    await visit.close();
  });

  test("35 a file that is uploaded in a temporary chat ends with it, although no message and no draft names it", async () => {
    const { account, visit, page } = await openStart();
    await newTemporaryChat(page);
    const created = await intercept(page, "POST", /\/files\/uploads$/);
    const drafts = await intercept(page, "PUT", /\/draft$/);
    await page.getByRole("form").locator('input[type="file"]').setInputFiles(textFile("tides.txt"));
    await expect.poll(() => created.length).toBe(1);
    const { conversation_id } = created[0]!.request().postDataJSON() as { conversation_id: string };
    expect((await read(account, conversation_id)).temporary).toBe(true);
    await created[0]!.continue();
    await expect.poll(() => drafts.length).toBe(1); // it is not stored
    const { data } = await account.read<{ data: { filename: string; kept: boolean }[] }>("/files");
    expect(data).toMatchObject([{ filename: "tides.txt", kept: false }]);
    await drafts[0]!.continue();
    await opened(page); // so that the next new chat of this window is another one
    await visit.close();
  });

  test("35 the choice can be changed after a draft was stored, and until the first message is sent", async () => {
    const { account, visit, page } = await openStart();
    await composer(page).fill("Which tide is this?");
    const conversation = await opened(page);
    await expect.poll(() => rows(page).count()).toBe(1);
    expect(await isPressed(page)).toBe("false");
    await newTemporaryChat(page);
    await badge(page).waitFor();
    await expect.poll(() => rows(page).count()).toBe(0);
    expect(await read(account, conversation)).toMatchObject({
      temporary: true,
      draft: { content: "Which tide is this?" },
    });
    await toggle(page).press("Enter");
    await badge(page).waitFor({ state: "hidden" });
    await expect.poll(() => rows(page).count()).toBe(1);
    // Nothing is sent while the choice is being stored.
    const requests = await intercept(page, "PUT", /\/conversations\/conv_\w+$/);
    await toggle(page).press("Enter");
    await expect.poll(() => requests.length).toBe(1);
    await composer(page).press("Enter");
    expect(await messages(page).count()).toBe(0);
    await requests[0]!.continue();
    await badge(page).waitFor();
    await composer(page).press("Enter");
    await messages(page).nth(1).waitFor();
    await toggle(page).waitFor({ state: "hidden" });
    expect((await read(account, conversation)).temporary).toBe(true);
    await visit.close();
  });

  test("35 a choice that the service refuses is shown as it is stored", async () => {
    const { account, visit, page } = await openStart();
    await composer(page).fill("Which tide is this?");
    const conversation = await opened(page);
    await toggle(page).waitFor();
    const requests = await intercept(page, "PUT", /\/conversations\/conv_\w+$/);
    await toggle(page).press("Enter");
    await expect.poll(() => requests.length).toBe(1);
    await account.chat(`From another device. ${fast(3)}`, { conversation_id: conversation });
    await requests[0]!.continue();
    await page.getByText("Couldn't change this. The conversation stays as it was.").waitFor();
    await toggle(page).waitFor({ state: "hidden" });
    expect((await read(account, conversation)).temporary).toBe(false);
    await visit.close();
  });

  test("35 a draft of a temporary chat that its closed page could not store is stored as temporary", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/health", account);
    const page = await visit.tab("/");
    const requests = await intercept(page, "PUT", /\/conversations\/conv_\w+$/);
    await newTemporaryChat(page);
    await composer(page).fill("Not for long");
    await expect.poll(() => requests.length).toBe(1);
    const conversation = requests[0]!.request().url().split("/").at(-1)!;
    await expect.poll(() => page.evaluate(() => JSON.stringify(localStorage))).toContain("Not for long");
    await page.close();
    await visit.page.goto(url);
    await expect
      .poll(() => read(account, conversation).catch(() => null))
      .toMatchObject({ temporary: true, draft: { content: "Not for long" } });
    await visit.close();
  });

  test("35 the choice survives a reload, can be reverted, and applies to one chat", async () => {
    const { account, visit, page } = await openStart();
    await newTemporaryChat(page);
    await page.reload();
    await notice(page).waitFor();
    await toggle(page).press("Enter");
    await notice(page).waitFor({ state: "hidden" });
    expect(await isPressed(page)).toBe("false");
    await newTemporaryChat(page);
    await page.getByRole("button", { name: /^Close this tab/ }).click(); // a first step
    await badge(page).waitFor();
    expect((await read(account, await opened(page))).temporary).toBe(true);
    await page.keyboard.press("Control+Shift+o");
    await page.waitForURL((address) => address.pathname === "/");
    await expect.poll(() => isPressed(page)).toBe("false");
    await send(page, `Hello! ${fast(3)}`);
    await expect.poll(() => rows(page).count()).toBe(1);
    await messages(page).nth(1).waitFor();
    expect((await read(account, await opened(page))).temporary).toBe(false);
    await visit.close();
  });

  test("35 what does not apply to a temporary conversation is not offered", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`Which tide is this? ${fast(5)}`, { temporary: true });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await badge(page).waitFor();
    await page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
    await page.getByRole("menuitem").first().waitFor();
    expect(await page.getByRole("menuitem").allInnerTexts()).toEqual(["Rename", "Branches…", "Delete"]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("dialog", { name: "Search and commands" });
    await palette.getByRole("option", { name: "Rename" }).waitFor();
    for (const name of ["Share…", "Pin", "Archive"])
      expect(await palette.getByRole("option", { name, exact: true }).count(), name).toBe(0);
    await page.keyboard.press("Escape");
    await palette.waitFor({ state: "hidden" });
    await visit.close();
  });

  test("35 a temporary conversation is in no list while its first message is being sent", async () => {
    const { account, visit, page } = await openStart();
    const requests = await intercept(page, "PUT", /\/conversations\/conv_\w+$/);
    await newTemporaryChat(page);
    await send(page, `Which tide is this? ${fast(5)}`);
    const conversation = await opened(page);
    await expect.poll(() => requests.length).toBe(1);
    expect(requests[0]!.request().postDataJSON()).toEqual({ profile: null, temporary: true });
    await page.getByRole("main").getByText("Temporary", { exact: true }).waitFor();
    await page.getByRole("heading", { level: 1, name: /^Which tide is this/ }).waitFor();
    expect(await rows(page).count()).toBe(0);
    await requests[0]!.continue();
    await badge(page).waitFor();
    expect((await read(account, conversation)).temporary).toBe(true);
    await visit.close();
  });

  test("42 a temporary chat is accessible on a desktop and on a phone", async () => {
    const { visit, page } = await openStart();
    await newTemporaryChat(page);
    await expectAccessibleOnDesktopAndPhone(page, "a new temporary chat");
    await send(page, `Which tide is this? ${fast(5)}`);
    await opened(page);
    await page
      .getByRole("main")
      .getByText(/^Temporary, erased/)
      .waitFor({ state: "attached" });
    await waitForAnswerEnd(page);
    await expectAccessibleOnDesktopAndPhone(page, "a temporary conversation");
    await visit.close();
  });
});
