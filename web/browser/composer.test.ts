// Tests of the composer: steering at once, the focus, the shortcut sheet, rate limits, and the list of waiting messages.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  composer,
  expectFocus,
  fast,
  intercept,
  messages,
  pausedAnswer,
  queue,
  refusal,
  send,
  sidebar,
  stored,
  textOf,
  waitForAnswerEnd,
  waitForAnswerText,
  waiting,
} from "./conversation-page";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { FaultProxy } from "./fault-proxy";
import { Account, BrowserWindow, desktop, phone, url, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

const narrow = { width: 320, height: 640 };
const touch = { viewport: phone, isMobile: true, hasTouch: true };

/** Changes settings of the account on another device. */
const change = async (account: Account, settings: object) =>
  account.request("PUT", "/account/settings", { ...(await account.read<object>("/account/settings")), ...settings });

/** Starts a paused answer with these queued messages, and opens its conversation. */
async function openWithQueue(page: Page, account: Account, texts: string[]) {
  const answer = await pausedAnswer();
  const { conversation, turn } = await account.startTurn(answer.text);
  for (const text of texts)
    await account.request("POST", "/chat", {
      conversation_id: conversation,
      input: [{ type: "text", text }],
      if_busy: "queue",
    });
  await openInApp(page, `/c/${conversation}`);
  await waitForAnswerText(page);
  return { answer, conversation, turn };
}

async function stopAnswer(page: Page): Promise<void> {
  await composer(page).press("Escape");
  await waitForAnswerEnd(page);
}

async function twoConversations(account: Account) {
  const [tides, moons] = [await account.chat("Hello!"), await account.chat("Hello!")];
  await account.request("PUT", `/conversations/${tides}/title`, { title: "Tides" });
  await account.request("PUT", `/conversations/${moons}/title`, { title: "Moons" });
  return { tides, moons };
}

describe("the composer", () => {
  test("has the focus after every way to reach it, with a ring if it came by keyboard; the listed keys send", async () => {
    const account = await Account.register();
    const { tides } = await twoConversations(account);
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    await focusFromSidebar(page, tides);
    await focusAfterEditing(page, account);
    await openInApp(page, "/");
    await keepFocusWhenStored(page);
    await openInApp(page, "/");
    await focusFromExamples(page);
    await listOnlyDraftsWithText(page);
    await stayOnOtherPage(page);
    await openInApp(page, "/");
    await showRingByKeyboard(page);
    await listKeysThatSend(page, account);
    await interruptAnswer(page, account);
    await visit.close();
  });

  test("on a touch screen does not take the focus, and the actions of a waiting message are in one menu", async () => {
    const account = await Account.register();
    const { tides, moons } = await twoConversations(account);
    const visit = await BrowserWindow.open(`/c/${moons}`, account, touch);
    await leaveFocus(visit.page, tides);
    await openActionsOfMessage(visit.page, account);
    await visit.close();
  });

  test("shows an outage and a rate limit as they are", async () => {
    const account = await Account.register();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const network = await FaultProxy.start();
    const visit = await BrowserWindow.open(`/c/${conversation}`, account, { proxy: network.proxy });
    await showOutage(visit.page, network);
    await openInApp(visit.page, `/c/${await account.chat("Hello!")}`);
    await showRateLimit(visit.page);
    await visit.close();
    await network.close();
  });
});

describe("during an answer", () => {
  test("6 and 8 messages wait, steer, return and are sent, and the list of them is shown whole at any size", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account, { viewport: narrow });
    const { page } = visit;
    await keepFieldOneLineHigh(page, account);
    await growUpToGreatestHeight(page);
    await showQueueAtHighZoom(page, account);
    await page.setViewportSize(desktop);
    await scrollQueue(page, account);
    await listQueuedMessageOnce(page, account);
    await bringBackDiscarded(page, account);
    await editQueued(page, account);
    await keepEditOfStarted(page, account);
    await sendAllHeld(page, account);
    await steerWithQueued(page, account);
    await refuseToSteerWithChanged(page, account);
    await applyPendingInput(page, account);
    await visit.close();
  });
});

async function focusFromSidebar(page: Page, tides: string): Promise<void> {
  await sidebar(page)
    .getByRole("link", { name: /^Moons/ })
    .click();
  await messages(page).nth(1).waitFor();
  await expectFocus(composer(page));
  await sidebar(page)
    .getByRole("link", { name: /^Moons/ })
    .focus();
  await page.keyboard.press("ArrowDown");
  await expectFocus(sidebar(page).getByRole("link", { name: /^Tides/ }));
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/c/${tides}`);
  await expectFocus(composer(page));
  await page.keyboard.type("High or low?");
  expect(await composer(page).inputValue()).toBe("High or low?");
}

async function focusAfterEditing(page: Page, account: Account): Promise<void> {
  await openInApp(page, `/c/${await account.chat("Hello!")}`);
  await messages(page).nth(1).waitFor();
  await composer(page).press("ArrowUp");
  const editor = page.getByRole("textbox", { name: "Edit your message" });
  await editor.fill("What is 6*7?");
  await editor.press("Enter");
  await expectFocus(composer(page));
  await page
    .getByText(/\b42\b/)
    .first()
    .waitFor();
}

/** The focus stays where it is when a new chat is stored. */
async function keepFocusWhenStored(page: Page): Promise<void> {
  await composer(page).fill("Tides");
  await page.getByRole("button", { name: /^Model profile/ }).click();
  const option = page.getByRole("menuitemradio", { name: /^Coding/ });
  await option.waitFor();
  await page.waitForURL("**/c/*");
  expect(await option.isVisible()).toBe(true);
  await option.click();
  await composer(page).press("End");
  await page.keyboard.type(" and moons");
  await expect.poll(() => composer(page).inputValue()).toBe("Tides and moons");
}

/** The focus stays on an example when the draft is stored, even before the conversation is loaded, and moves to the composer when the examples disappear. */
async function focusFromExamples(page: Page): Promise<void> {
  const requests = await intercept(page, "GET", /\/conversations\/conv_\w+$/);
  await composer(page).fill("Tides");
  const example = page.getByRole("main").getByRole("listitem").getByRole("button").last();
  await example.waitFor();
  await page.keyboard.press("Shift+Tab");
  await expectFocus(example);
  await page.waitForURL("**/c/*");
  await expectFocus(example);
  const loaded = page.waitForResponse(/\/conversations\/conv_\w+$/);
  for (const request of requests) await request.continue();
  await page.unrouteAll();
  await loaded;
  await expectFocus(example);
  await page.getByRole("button", { name: /^Close this tab while it answers/ }).press("Enter");
  await messages(page).nth(1).waitFor();
  await expectFocus(composer(page));
}

/** A new conversation looks like a new chat until its first message, and is in the list only while its draft has a text. */
async function listOnlyDraftsWithText(page: Page): Promise<void> {
  const welcome = page.getByRole("heading", { level: 1, name: "What's on your mind?" });
  await openInApp(page, "/");
  await composer(page).fill("Moons");
  await page.waitForURL("**/c/*");
  const id = new URL(page.url()).pathname.split("/").at(-1)!;
  const row = sidebar(page).locator(`[data-conversation="${id}"]`, { hasText: /^Draft$/ });
  await row.waitFor();
  await welcome.waitFor();
  await page.reload();
  await row.waitFor();
  await welcome.waitFor();
  await expect.poll(() => composer(page).inputValue()).toBe("Moons");
  await composer(page).fill("");
  await row.waitFor({ state: "hidden" });
  await welcome.waitFor();
}

/** A page that is opened while a new chat is being stored stays open. */
async function stayOnOtherPage(page: Page): Promise<void> {
  await openInApp(page, "/");
  const requests = await intercept(page, "GET", /\/conversations\/conv_\w+$/);
  await composer(page).fill("Shoals");
  await expect.poll(() => requests.length).toBeGreaterThan(0);
  await openInApp(page, "/library");
  const started = () => page.evaluate(() => Object.keys(sessionStorage).some((key) => key.includes("new-chat")));
  for (const request of requests) await request.continue();
  await page.unrouteAll();
  await expect.poll(started).toBe(false);
  await page.getByRole("heading", { level: 1, name: "Library" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/library");
}

/** The composer has no ring when the focus came by pointer. */
async function showRingByKeyboard(page: Page): Promise<void> {
  const ring = () =>
    page.getByRole("form", { name: "Write a message" }).evaluate((form) =>
      [...form.querySelectorAll("*")].some((element) => {
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return outlineStyle === "solid" && parseFloat(outlineWidth) >= 2;
      }),
    );
  await composer(page).click();
  await page.keyboard.type("Hello");
  expect(await ring()).toBe(false);
  await page.waitForURL("**/c/*");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  await expectFocus(composer(page));
  await expect.poll(ring).toBe(true);
}

/** The shortcut sheet lists the keys that send with the settings of the account. */
async function listKeysThatSend(page: Page, account: Account): Promise<void> {
  await page.keyboard.press("ControlOrMeta+/");
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await sheet.getByText("Send", { exact: true }).waitFor();
  const keys = async () => {
    const rows = await sheet
      .locator("dl > div")
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent!)));
    return Object.fromEntries(rows) as Record<string, string>;
  };
  await change(account, { send_key: "mod_enter", busy_action: "steer", steering_delivery: "next_step" });
  await expect.poll(keys).toMatchObject({
    Send: "Ctrl+Enter",
    "New line": "Enter",
    "Steer the answer": "Ctrl+Enter",
    "Queue during an answer": "Ctrl+Shift+Enter",
  });
  await change(account, { send_key: "enter", busy_action: "queue", steering_delivery: "next_step" });
  await expect.poll(keys).toMatchObject({
    Send: "Enter",
    "New line": "Shift+Enter",
    "Queue during an answer": "Enter",
    "Steer the answer": "Ctrl+Enter",
  });
  await change(account, { steering_delivery: "interrupt" });
  await expect.poll(keys).toMatchObject({ "Interrupt the answer and send": "Ctrl+Enter" });
  expect(await keys()).not.toHaveProperty("Steer the answer");
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "hidden" });
}

/** Mod+Enter interrupts the answer of an account that steers at once. */
async function interruptAnswer(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, []);
  await send(page, "Only one sentence, please.", "ControlOrMeta+Enter");
  await messages(page).nth(1).getByText("Cut off here.").waitFor();
  await messages(page)
    .nth(1)
    .getByText(/^Taking into account: Only one sentence, please\./)
    .waitFor();
  await stopAnswer(page);
  expect((await stored(account, conversation))[1]!.parts.some(({ truncated }) => truncated)).toBe(true);
}

/** The focus would open the keyboard of the touch screen. */
async function leaveFocus(page: Page, tides: string): Promise<void> {
  await page.getByRole("button", { name: "Show sidebar" }).tap();
  await sidebar(page)
    .getByRole("link", { name: /^Tides/ })
    .tap();
  await page.waitForURL(`**/c/${tides}`);
  await messages(page).nth(1).waitFor();
  await sidebar(page).waitFor({ state: "hidden" });
  expect(await composer(page).evaluate((field) => field === document.activeElement)).toBe(false);
}

async function openActionsOfMessage(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, ["One.", "Two."]);
  const row = waiting(page).getByRole("listitem").filter({ hasText: "One." });
  expect(await row.getByRole("button").count()).toBe(1);
  await row.getByRole("button", { name: "Actions: One." }).tap();
  await page.getByRole("menuitem", { name: "Steer now" }).waitFor();
  await page.getByRole("menuitem", { name: "Discard" }).tap();
  await row.waitFor({ state: "hidden" });
  expect(await queue(account, conversation)).toEqual(["cancelled: One.", "queued: Two."]);
}

/** While the server can't be reached, the page doesn't claim that the answer continues. */
async function showOutage(page: Page, network: FaultProxy): Promise<void> {
  await waitForAnswerText(page);
  network.cut();
  const banner = page.getByText("Can't reach the server. Nothing you've sent is lost.");
  await banner.waitFor();
  expect(await page.getByText("The answer continues on the server").count()).toBe(0);
  network.restore();
  await banner.waitFor({ state: "hidden" });
  await stopAnswer(page);
}

/** A rate limit is stated once, in a text of constant width, and leaves no control behind. */
async function showRateLimit(page: Page): Promise<void> {
  await messages(page).nth(1).waitFor();
  await page.clock.install();
  await page.route(`${url}/chat`, (route) =>
    route.fulfill(refusal(429, "rate_limited", "Too many requests.", { "Retry-After": "120" })),
  );
  await send(page, "What is 6*7?");
  await page.getByRole("alert").getByText("Not sent: you reached your limit.").waitFor();
  const visible = (text: RegExp) =>
    page
      .getByText(text)
      .evaluateAll((all) => all.filter((element) => element.getBoundingClientRect().width > 1).length);
  expect(await visible(/your limit/)).toBe(1);
  const countdown = page.getByText(/^Try again in/);
  expect(await countdown.count()).toBe(1);
  const automatically = page.getByRole("checkbox", { name: "Send automatically" });
  expect(await automatically.count()).toBe(1);
  const widths: number[] = [];
  const texts = new Set<string>();
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
  for (let times = 0; times < 4; times++) {
    texts.add((await countdown.textContent())!);
    widths.push(await countdown.evaluate((element) => element.getBoundingClientRect().width));
    await page.clock.runFor(times === 1 ? 90_000 : 3_000);
  }
  expect(texts.size).toBe(4);
  expect(Math.max(...widths) - Math.min(...widths)).toBeLessThan(0.5);
  await page.clock.runFor(60_000);
  await countdown.waitFor({ state: "hidden" });
  expect(await automatically.count()).toBe(0);
  await page.getByRole("button", { name: "Try again" }).waitFor();
}

/** For a long text the browser does not look for a height: it would lay out the whole text twice for each key. */
async function growUpToGreatestHeight(page: Page): Promise<void> {
  const field = composer(page);
  const state = () =>
    field.evaluate((area) => ({
      height: area.getBoundingClientRect().height / innerHeight,
      sizing: getComputedStyle(area).getPropertyValue("field-sizing"),
    }));
  await field.fill("word ".repeat(790)); // 3,950 characters
  const { height: greatest, sizing } = await state();
  expect(greatest).toBeCloseTo(0.4, 2);
  expect(sizing).toBe("content");
  await field.press("End");
  await page.keyboard.insertText("word ".repeat(20));
  await expect.poll(state).toEqual({ height: greatest, sizing: "fixed" });
  await field.fill("");
  await expect.poll(async () => (await state()).sizing).toBe("content");
}

async function keepFieldOneLineHigh(page: Page, account: Account): Promise<void> {
  await composer(page).waitFor();
  const height = () => composer(page).evaluate((field) => field.scrollHeight);
  const line = await height();
  await openWithQueue(page, account, []);
  expect(await height()).toBe(line);
  await stopAnswer(page);
}

/** At 400 % zoom every row is shown with its whole buttons, and the list scrolls with the page. */
async function showQueueAtHighZoom(page: Page, account: Account): Promise<void> {
  const texts = ["One", "Two", "Three", "Four", "Five", "Six"];
  await page.setViewportSize({ width: 320, height: 200 });
  await openWithQueue(page, account, texts);
  const list = waiting(page).getByRole("list");
  await list.getByRole("listitem").nth(5).waitFor();
  // Nothing of the list is cut off or scrolls by itself.
  expect(await list.evaluate((element) => element.scrollHeight - element.clientHeight)).toBe(0);
  for (const text of texts) {
    const button = list.getByRole("button", { name: `Edit: ${text}` });
    await button.scrollIntoViewIfNeeded();
    const covered = await button.evaluate((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      return left < 0 || right > innerWidth || !(at !== null && element.contains(at));
    });
    expect(covered, text).toBe(false);
  }
}

/** The list shows four messages and a part of the fifth, and scrolls by keyboard. */
async function scrollQueue(page: Page, account: Account): Promise<void> {
  const texts = ["One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven."];
  await openWithQueue(page, account, texts);
  const rows = waiting(page).getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(texts.length);
  const list = waiting(page).getByRole("list");
  const shown = () =>
    list.evaluate((element) => {
      const frame = element.getBoundingClientRect();
      return [...element.children].map((row) => {
        const { top, bottom, height } = row.getBoundingClientRect();
        return Math.max(0, Math.min(bottom, frame.bottom) - Math.max(top, frame.top)) / height;
      });
    });
  const before = await shown();
  expect(before.slice(0, 4).every((part) => part > 0.95)).toBe(true);
  expect(before[4]).toBeGreaterThan(0.1);
  expect(before[4]).toBeLessThan(0.9);
  await list.focus();
  await page.keyboard.press("End");
  await expect.poll(async () => (await shown())[6]).toBeGreaterThan(0.95);
  await stopAnswer(page);
}

/** A queued message is listed once while the response to it is still on its way. */
async function listQueuedMessageOnce(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, []);
  let respond = () => {};
  const responded = new Promise<void>((resolve) => (respond = resolve));
  await page.route(`${url}/chat`, async (route) => {
    const response = await route.fetch();
    // The conversation is read again, as it is on a change in another tab, before the page has the response.
    await page.evaluate(
      (id) => new BroadcastChannel("turnstone-changes").postMessage(["conversation", id]),
      conversation,
    );
    await responded;
    await route.fulfill({ response });
  });
  await send(page, "What do they eat?");
  const rows = waiting(page).getByRole("listitem");
  await rows.getByRole("button", { name: /^Discard/ }).waitFor();
  expect(await rows.count()).toBe(1);
  respond();
  await waiting(page).getByText("1 queued").waitFor();
  expect(await rows.count()).toBe(1);
  await stopAnswer(page);
  await page.unrouteAll();
}

/** A discarded message can be brought back: into the queue, or into the composer if it was on hold. */
async function bringBackDiscarded(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, ["One.", "Two."]);
  const undo = page.getByRole("status").getByRole("button", { name: "Undo" });
  await waiting(page).getByRole("button", { name: "Discard: One." }).press("Enter");
  await waiting(page).getByText("One.").waitFor({ state: "hidden" });
  await expectFocus(composer(page));
  await undo.press("Enter");
  await waiting(page).getByRole("button", { name: "Discard: One." }).waitFor();
  expect(await queue(account, conversation)).toEqual(["cancelled: One.", "queued: Two.", "queued: One."]);
  await stopAnswer(page);
  await waiting(page).getByText("2 on hold").waitFor();
  await waiting(page).getByRole("button", { name: "Discard: Two." }).press("Enter");
  await waiting(page).getByText("Two.").waitFor({ state: "hidden" });
  await undo.press("Enter");
  await expect.poll(() => composer(page).inputValue()).toBe("Two.");
  expect(await queue(account, conversation)).toEqual(["cancelled: One.", "cancelled: Two.", "held: One."]);
}

const queuedEditor = (page: Page) => waiting(page).getByRole("textbox", { name: "Edit the queued message" });

/** Escape leaves the editor of a queued message and does not stop the answer. A saved message keeps its place. */
async function editQueued(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, ["One.", "Two."]);
  await waiting(page).getByRole("button", { name: "Edit: One." }).press("Enter");
  await expectFocus(queuedEditor(page));
  await queuedEditor(page).fill("No.");
  await queuedEditor(page).press("Escape");
  await queuedEditor(page).waitFor({ state: "hidden" });
  await expectFocus(composer(page));
  await waiting(page).getByRole("button", { name: "Edit: One." }).press("Enter");
  await queuedEditor(page).fill("One and a half.");
  await queuedEditor(page).press("Enter");
  await queuedEditor(page).waitFor({ state: "hidden" }); // it has the same text until the change is stored
  await waiting(page).getByText("One and a half.").waitFor();
  expect(await composer(page).inputValue()).toBe("");
  expect(await queue(account, conversation)).toEqual(["queued: One and a half.", "queued: Two."]);
  expect((await stored(account, conversation)).map(({ status }) => status)).toEqual(["complete", "streaming"]);
  await stopAnswer(page);
  await waiting(page).getByText("2 on hold").waitFor();
}

/** A message that starts while it is being edited is sent as it was; the changed text is in the composer. */
async function keepEditOfStarted(page: Page, account: Account): Promise<void> {
  const { answer, conversation } = await openWithQueue(page, account, [`One. ${fast(3)}`]);
  await waiting(page)
    .getByRole("button", { name: /^Edit: One\./ })
    .press("Enter");
  await queuedEditor(page).fill("Two.");
  await answer.release();
  await page.getByRole("status").getByText("The message you were editing has left the queue.").waitFor();
  await expect.poll(() => composer(page).inputValue()).toBe("Two.");
  await waitForAnswerEnd(page);
  expect(textOf((await stored(account, conversation))[2]!)).toBe(`One. ${fast(3)}`);
  await composer(page).fill("");
}

/** All messages on hold are sent with one button, in their order. */
async function sendAllHeld(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, ["What is 6*7?", "What is 6*8?"]);
  await stopAnswer(page);
  await waiting(page).getByText("2 on hold").waitFor();
  await waiting(page).getByRole("button", { name: "Send all" }).press("Enter");
  await expectFocus(composer(page));
  await page
    .getByText(/\b48\b/)
    .first()
    .waitFor();
  await waitForAnswerEnd(page);
  const all = await stored(account, conversation);
  expect([2, 4].map((at) => textOf(all[at]!))).toEqual(["What is 6*7?", "What is 6*8?"]);
  expect(await queue(account, conversation)).toEqual(["started: What is 6*7?", "started: What is 6*8?"]);
}

/** A queued message can steer the answer instead. */
async function steerWithQueued(page: Page, account: Account): Promise<void> {
  const next = `Two. ${fast(3)}`;
  const { answer, conversation } = await openWithQueue(page, account, ["Mention the moon.", next]);
  await waiting(page).getByRole("button", { name: "Steer now: Mention the moon." }).press("Enter");
  await expectFocus(composer(page));
  await waiting(page).getByText("Changing the answer now").waitFor();
  await expect.poll(() => queue(account, conversation)).toEqual(["cancelled: Mention the moon.", `queued: ${next}`]);
  await answer.release();
  await messages(page)
    .nth(1)
    .getByText(/^Taking into account: Mention the moon\./)
    .waitFor();
  await waitForAnswerEnd(page);
  const texts = (await stored(account, conversation)).map(textOf);
  expect(texts.filter((text) => text.startsWith("Mention the moon"))).toEqual([]);
}

/** A message that was started or changed elsewhere in the meantime does not steer. */
async function refuseToSteerWithChanged(page: Page, account: Account): Promise<void> {
  const { conversation } = await openWithQueue(page, account, ["Mention the moon."]);
  const steered: string[] = [];
  page.on("request", (request) => void (request.url().endsWith("/chat/steering") && steered.push(request.url())));
  await page.route("**/follow-ups/*", async (route) => {
    const { follow_up_id, version } = (
      await account.read<{ data: { follow_up_id: string; version: number }[] }>(
        `/conversations/${conversation}/follow-ups`,
      )
    ).data[0]!;
    await account.request("PATCH", `/conversations/${conversation}/follow-ups/${follow_up_id}`, {
      state: "queued",
      content: "Mention the sun.",
      version,
    });
    await route.continue();
  });
  await waiting(page).getByRole("button", { name: "Steer now: Mention the moon." }).press("Enter");
  await page.getByRole("alert").getByText("This was changed on another device.").waitFor();
  await waiting(page).getByText("Mention the sun.").waitFor();
  expect(await waiting(page).getByRole("listitem").count()).toBe(1);
  expect(steered).toEqual([]);
  expect(await queue(account, conversation)).toEqual(["queued: Mention the sun."]);
  await stopAnswer(page);
  await page.unrouteAll();
}

/** A pending input can be applied at once. */
async function applyPendingInput(page: Page, account: Account): Promise<void> {
  const { turn } = await openWithQueue(page, account, []);
  await send(page, "Only one sentence, please.", "ControlOrMeta+Enter");
  const row = waiting(page).getByRole("listitem").filter({ hasText: "Only one sentence, please." });
  const apply = row.getByRole("button", { name: "Apply now: Only one sentence, please." });
  await apply.waitFor();
  const requests = await intercept(page, "POST", "**/chat/steering");
  await apply.press("Enter");
  await expectFocus(composer(page));
  await expect.poll(() => requests.length).toBe(1);
  expect(requests[0]!.request().postDataJSON()).toEqual({
    type: "apply_now",
    turn_id: turn,
    steering_id: expect.stringMatching(/^st_/),
  });
  // No second decision while the first is on its way.
  await row.getByText("Applying…").waitFor();
  expect(await row.getByRole("button").count()).toBe(0);
  await requests[0]!.continue();
  await page.unrouteAll();
  await messages(page).nth(1).getByText("Cut off here.").waitFor();
  await messages(page)
    .nth(1)
    .getByText(/^Taking into account: Only one sentence, please\./)
    .waitFor();
  await row.waitFor({ state: "hidden" });
  await stopAnswer(page);
}

test("1 text that was written before the page learns that its conversation was deleted is not lost", async () => {
  const account = await Account.register();
  const id = await account.chat(`Which tide is this? ${fast(3)}`);
  await account.request("DELETE", `/conversations/${id}`);
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  const requests = await intercept(page, "GET", new RegExp(`/conversations/${id}$`));
  await page.goto(`${url}/c/${id}`);
  await composer(page).fill("Please keep me.");
  await expect.poll(() => requests.length).toBeGreaterThan(0);
  for (const request of requests) await request.continue();
  await page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
  const kept = page.getByRole("region", { name: "Your text" });
  await kept.getByText("Please keep me.").waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "a page that does not exist, with a text");
  await kept.getByRole("button", { name: "New conversation with this text" }).press("Enter");
  await expect.poll(() => composer(page).inputValue()).toBe("Please keep me.");
  await expectFocus(composer(page));
  await visit.close();
});
