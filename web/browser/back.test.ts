// Tests of Back and Forward: they return to where the reader was, and on a phone Back closes what is in front of the page.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { atEnd, composer, mainHeading, scroller, sidebar } from "./conversation-page";
import { Account, BrowserWindow, phone, url, withBrowser } from "./harness";
import { importConversation } from "./long-conversation";

withBrowser();

const paragraphs = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${name} ${at}. ${"The tide comes in and goes out. ".repeat(8)}`);

/** The first row whose top is visible, and the distance of its top from that of the view. */
const reading = (page: Page) =>
  page.evaluate(() => {
    const view = document.querySelector("[data-scroll]")!.getBoundingClientRect();
    const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
    const row = rows.find((one) => one.getBoundingClientRect().top >= view.top);
    return row === undefined
      ? ""
      : `${row.innerText.split("\n").at(2)?.slice(0, 12)} at ${Math.round(row.getBoundingClientRect().top - view.top)}`;
  });

/** Scrolls as a reader does, and returns what is read then, once it has stayed the same. */
async function readAt(page: Page, by: number): Promise<string> {
  await scroller(page).hover();
  await page.mouse.wheel(0, by);
  let before = "";
  await expect.poll(async () => before === (before = await reading(page))).toBe(true);
  return before;
}

/** Scrolls up until all messages are loaded. */
const loadAll = (page: Page) =>
  expect
    .poll(async () => {
      await page.mouse.wheel(0, -100_000);
      return page.getByText("Loading older messages…").count();
    })
    .toBe(0);

const open = (page: Page, title: string) => sidebar(page).getByRole("link", { name: title }).click();

describe("Back and Forward", () => {
  test("return to the positions in a short and in a long conversation, and from the settings", async () => {
    const account = await Account.register();
    const short = await importConversation(account, "Short", paragraphs("Short", 40));
    await importConversation(account, "Long", paragraphs("Long", 320));
    const visit = await BrowserWindow.open(`/c/${short}`, account);
    const { page } = visit;
    await atEnd(page);
    const inShort = await readAt(page, -1_200);
    await open(page, "Long");
    await mainHeading(page).getByText("Long", { exact: true }).waitFor();
    await atEnd(page);
    await scroller(page).hover();
    await loadAll(page);
    const inLong = await readAt(page, 3_000);
    await page.goBack();
    await mainHeading(page).getByText("Short", { exact: true }).waitFor();
    await expect.poll(() => reading(page)).toBe(inShort);
    await page.goForward();
    await mainHeading(page).getByText("Long", { exact: true }).waitFor();
    await expect.poll(() => reading(page)).toBe(inLong);

    await page.getByRole("button", { name: /^Account: / }).press("Enter");
    await page.getByRole("menuitem", { name: "Settings" }).press("Enter");
    const settings = page.getByRole("navigation", { name: "Settings sections" });
    await settings.getByRole("link", { name: "Security" }).click();
    await settings.getByRole("link", { name: "About" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#about");
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await mainHeading(page).getByText("Long", { exact: true }).waitFor();
    await expect.poll(() => reading(page)).toBe(inLong);
    await page.reload();
    await mainHeading(page).getByText("Long", { exact: true }).waitFor();
    await atEnd(page); // what was read there is not loaded
    const nearEnd = await readAt(page, -3_000);
    await page.reload();
    await mainHeading(page).getByText("Long", { exact: true }).waitFor();
    await expect.poll(() => reading(page)).toBe(nearEnd);
    await page.goBack();
    await mainHeading(page).getByText("Short", { exact: true }).waitFor();
    await expect.poll(() => reading(page)).toBe(inShort);
    await page.goForward();
    await mainHeading(page).getByText("Long", { exact: true }).waitFor();
    await open(page, "Short"); // a new visit shows the end
    await mainHeading(page).getByText("Short", { exact: true }).waitFor();
    await atEnd(page);
    await visit.close();
  });

  test("45 after a reload with a dialog open on a phone, one Back leads to the page before", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/library", account, { viewport: phone });
    const { page } = visit;
    await mainHeading(page).getByText("Library", { exact: true }).waitFor();
    const drawer = page.getByRole("dialog", { name: "Conversations" });
    await page.getByRole("button", { name: "Show sidebar" }).click();
    await drawer.getByRole("link", { name: "New conversation" }).click();
    await composer(page).waitFor();
    await page.getByRole("button", { name: "Show sidebar" }).click();
    await drawer.waitFor();
    await page.waitForFunction(() => (history.state as { inFront?: number } | null)?.inFront === 1);
    await page.reload();
    await composer(page).waitFor();
    await page.goBack();
    await mainHeading(page).getByText("Library", { exact: true }).waitFor();
    await visit.close();
  });

  test("45 Back on a phone closes the drawer, a dialog and the palette, and then leads to the page before", async () => {
    const account = await Account.register();
    const first = await importConversation(account, "First", paragraphs("First", 4));
    await importConversation(account, "Second", paragraphs("Second", 4));
    const visit = await BrowserWindow.open("/health", account, { viewport: phone });
    const { page } = visit;
    await page.goto(`${url}/c/${first}`);
    await atEnd(page);
    const drawer = page.getByRole("dialog", { name: "Conversations" });
    const show = () => page.getByRole("button", { name: "Show sidebar" }).click();
    await show();
    await drawer.waitFor();
    await backTo(page, first);
    await drawer.waitFor({ state: "hidden" });
    await show();
    await drawer.getByRole("link", { name: "Second" }).click();
    await mainHeading(page).getByText("Second", { exact: true }).waitFor();
    const second = new URL(page.url()).pathname.split("/").at(-1)!;
    await page.getByRole("button", { name: "Actions for this conversation" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: /Delete/ });
    await dialog.waitFor();
    await backTo(page, second);
    await dialog.waitFor({ state: "hidden" });
    await page.keyboard.press("ControlOrMeta+k");
    const palette = page.getByRole("dialog", { name: "Search" });
    await palette.waitFor();
    await page.keyboard.press("Escape"); // the entry of the palette stays, and Back passes over it
    await palette.waitFor({ state: "hidden" });
    await page.goBack();
    await mainHeading(page).getByText("First", { exact: true }).waitFor();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/c/${first}`);
    await composer(page).waitFor();
    await visit.close();
  });
});

test("45 on a phone, a swipe from the start of the page opens the drawer, and one towards it closes the drawer", async () => {
  const visit = await BrowserWindow.open("/", await Account.register(), { viewport: phone, hasTouch: true });
  const { page } = visit;
  await composer(page).waitFor();
  const swipe = (from: number, to: number, down = 0) =>
    page.evaluate(
      ([x, end, dy]) => {
        const touch = (clientX: number, clientY: number) =>
          new Touch({ identifier: 1, target: document.body, clientX, clientY });
        const send = (type: string, at: Touch, touches: Touch[]) =>
          document.body.dispatchEvent(new TouchEvent(type, { bubbles: true, touches, changedTouches: [at] }));
        const first = touch(x, 300);
        send("touchstart", first, [first]);
        send("touchend", touch(end, 300 + dy), []);
      },
      [from, to, down] as const,
    );
  const drawer = page.getByRole("dialog", { name: "Conversations" });
  await swipe(10, 90, 200); // the page is scrolled
  await swipe(100, 300); // code is scrolled
  await swipe(10, 40);
  expect(await drawer.count()).toBe(0);
  await swipe(10, 120);
  await drawer.waitFor();
  await swipe(300, 100);
  await drawer.waitFor({ state: "hidden" });
  await visit.close();
});

/** Goes back once, which stays on the page of a conversation. */
async function backTo(page: Page, conversation: string): Promise<void> {
  await page.waitForFunction(() => (history.state as { inFront?: number } | null)?.inFront === 1);
  await page.goBack();
  expect(new URL(page.url()).pathname).toBe(`/c/${conversation}`);
}
