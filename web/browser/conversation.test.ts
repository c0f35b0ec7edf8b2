// Tests of a conversation through the user interface, by keyboard and accessible names.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { atEnd, composer, expectFocus, fast, pausedAnswer, messages, stop, stored } from "./conversation-page";
import { Account, phone, url, BrowserWindow, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

async function draftOf(account: Account, conversation: string): Promise<string> {
  return (await account.read<{ draft: { content: string } }>(`/conversations/${conversation}`)).draft.content;
}

/** Imports a conversation with this first message and this number of messages, and returns it. */
async function importConversation(account: Account, first: string, count: number): Promise<string> {
  const messages = Array.from({ length: count }, (_, at) => ({
    id: `m${at}`,
    parent: at === 0 ? null : `m${at - 1}`,
    children: at === count - 1 ? [] : [`m${at + 1}`],
    message: {
      id: `m${at}`,
      author: { role: at % 2 === 0 ? "user" : "assistant" },
      create_time: 1_764_000_000 + at,
      content: { content_type: "text", parts: [at === 0 ? first : `Number ${at}.`] },
      metadata: {},
    },
  }));
  const imported = await account.request("POST", "/account/imports", [
    {
      id: "long",
      title: "Numbers",
      create_time: 1_764_000_000,
      current_node: `m${count - 1}`,
      mapping: Object.fromEntries(messages.map((one) => [one.id, one])),
    },
  ]);
  const { import_id } = (await imported.json()) as { import_id: string };
  const progress = () => account.read<{ state: string; messages: number }>(`/account/imports/${import_id}`);
  await expect.poll(progress).toMatchObject({ state: "completed", messages: count });
  const { data } = await account.read<{ data: { conversation_id: string; title: string }[] }>("/conversations");
  return data.find(({ title }) => title === "Numbers")!.conversation_id;
}

describe("a conversation", () => {
  test("1 and 23 drafts and the chosen version of a message are stored in the account and shown on other devices", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    const mobile = await BrowserWindow.open("/settings", account, { viewport: phone });
    await shareDraft(visit.page, mobile.page, account);
    await chooseVersion(visit.page, mobile.page, account);
    await visit.close();
    await mobile.close();
  });

  test("2, 5, 14, 16 to 18 and 20 keys, menus, a long transcript, reasoning, tools and code work as shown", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    await closeLoadingMenu(page, account);
    await chooseProfile(page, account);
    await sendByKeyboard(page, account);
    await readLongConversation(page, account);
    await openInApp(page, "/");
    await answerWithBalanced(page, account);
    await unfoldAndCopy(page, account);
    await typeBeforeOutboxIsRead(page, account);
    await visit.close();
  });

  test("6, 8, 9, 10 and 13 an answer is stopped, steered, continued after a reload, and does not move its reader", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await queueAndSteer(page, account);
    await stopByKeyboard(page, account);
    await releaseHeldMessages(page, account);
    await showMessageSentElsewhere(page, account);
    await continueAfterReload(page, account);
    await scrollUpDuringAnswer(page, account);
    await visit.close();
  });
});

/** A draft is saved while typing and shown on other devices, also in new chats and during answers. */
async function shareDraft(page: Page, mobile: Page, account: Account): Promise<void> {
  await composer(page).fill("A thought that is not finished");
  await page.waitForURL(/\/c\/conv_/);
  const conversation = page.url().split("/c/")[1]!;
  await expect.poll(() => draftOf(account, conversation)).toBe("A thought that is not finished");
  await openInApp(mobile, `/c/${conversation}`);
  await expect.poll(() => composer(mobile).inputValue()).toBe("A thought that is not finished");
  await page.reload();
  await expect.poll(() => composer(page).inputValue()).toBe("A thought that is not finished");
  await composer(page).fill((await pausedAnswer()).text);
  await composer(page).press("Enter");
  await stop(page).waitFor();
  await composer(page).fill("Meanwhile");
  await expect.poll(() => draftOf(account, conversation)).toBe("Meanwhile");
}

/** Editing and regenerating create another version; the chosen version is stored in the account. */
async function chooseVersion(page: Page, mobile: Page, account: Account): Promise<void> {
  const conversation = await account.chat("What is 6*7?");
  await openInApp(page, `/c/${conversation}`);
  const question = messages(page).first();
  await question.hover();
  await question.getByRole("button", { name: /edit/i }).click();
  const field = question.getByRole("textbox");
  await field.fill("What is 6*8?");
  await question.getByRole("button", { name: /^send/i }).click();
  await page
    .getByText(/\b48\b/)
    .first()
    .waitFor();
  await question.getByText("2/2").or(question.getByText("2 / 2")).first().waitFor();
  await question.getByRole("button", { name: /previous version/i }).click();
  await messages(page)
    .last()
    .getByText(/\b42\b/)
    .first()
    .waitFor();
  await expect.poll(async () => (await stored(account, conversation))[0]!.parts[0]!.text).toBe("What is 6*7?");
  await openInApp(mobile, `/c/${conversation}`);
  await messages(mobile)
    .last()
    .getByText(/\b42\b/)
    .first()
    .waitFor();
  await messages(page).last().hover();
  await messages(page)
    .last()
    .getByRole("button", { name: /^regenerate$/i })
    .click();
  await expect.poll(async () => (await stored(account, conversation)).at(-1)!.sibling_count).toBe(2);
}

/** A menu that is still loading does not open after Esc. */
async function closeLoadingMenu(page: Page, account: Account): Promise<void> {
  const conversation = await account.chat("Hello!");
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/assets\/menu-content-[^/]*\.js$/, async (route) => {
    await gate;
    await route.continue();
  });
  await openInApp(page, `/c/${conversation}`);
  const button = page.getByRole("button", { name: /^Model profile/ });
  const requested = page.waitForRequest(/menu-content-/);
  await button.press("Enter");
  await requested;
  await page.keyboard.press("Escape");
  const loaded = page.waitForResponse(/menu-content-/);
  release();
  await (await loaded).finished();
  await composer(page).fill("Not behind a menu");
  await button.press("Enter");
  await page.getByRole("menuitemradio", { name: /^Coding/ }).waitFor();
  expect(await page.getByRole("menu").count()).toBe(1);
  await page.keyboard.press("Escape");
  await page.unrouteAll();
}

/** A profile is chosen for the conversation with the keyboard. */
async function chooseProfile(page: Page, account: Account): Promise<void> {
  const conversation = await account.chat("Hello!");
  await openInApp(page, `/c/${conversation}`);
  await messages(page).nth(1).waitFor(); // until the conversation is loaded, a choice is for the next message only
  await page.getByRole("button", { name: /^Model profile/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitemradio", { name: /^Coding · \S+ / }).press("Enter");
  await expect
    .poll(async () => (await account.read<{ profile: string }>(`/conversations/${conversation}`)).profile)
    .toBe("coding");
}

/** Enter sends, Shift+Enter adds a line, and keys of an input method are ignored. */
async function sendByKeyboard(page: Page, account: Account): Promise<void> {
  const conversation = await account.chat("Hello!");
  await openInApp(page, `/c/${conversation}`);
  const box = composer(page);
  await box.click();
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  expect(await box.inputValue()).toBe("one\ntwo");
  await box.evaluate((element) => {
    element.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
    element.dispatchEvent(
      new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, isComposing: true }),
    );
    element.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
    element.dispatchEvent(
      new KeyboardEvent("keydown", {
        key: "Enter",
        keyCode: 229,
        bubbles: true,
        cancelable: true,
      } as KeyboardEventInit),
    );
  });
  expect(await box.inputValue()).toBe("one\ntwo");
  await box.press("Enter");
  await expect.poll(() => box.inputValue()).toBe("");
  await expect.poll(async () => (await stored(account, conversation)).length).toBe(4);
  expect((await stored(account, conversation))[2]!.parts[0]!.text).toBe("one\ntwo");
}

/** A conversation of 400 messages has few elements, and scrolling reaches the first message. */
async function readLongConversation(page: Page, account: Account): Promise<void> {
  const conversation = await importConversation(account, "The very first.", 400);
  await openInApp(page, `/c/${conversation}`);
  await messages(page).last().waitFor();
  const first = page.getByText("The very first.").first();
  await expect
    .poll(async () => {
      await page.locator("[data-scroll]").evaluate((element) => element.scrollTo(0, 0));
      return first.count();
    })
    .toBeGreaterThan(0);
  expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(3_000);
}

/** The routing notice names the profile and the reason, and offers Balanced instead. */
async function answerWithBalanced(page: Page, account: Account): Promise<void> {
  const text = "Please fix the bug in src/main.go, the unit test panics with a nil pointer dereference";
  await composer(page).fill(`${text} ${fast(20)}`);
  await composer(page).press("Enter");
  await page
    .getByText(/Coding/)
    .first()
    .waitFor();
  await stop(page).waitFor({ state: "hidden" });
  const balanced = page.getByRole("button", { name: /Balanced/ }).first();
  await balanced.click();
  const conversation = page.url().split("/c/")[1]!;
  await expect.poll(async () => (await stored(account, conversation)).at(-1)?.sibling_count).toBe(2);
}

/** Reasoning is folded, tool calls are shown, and code can be copied. */
async function unfoldAndCopy(page: Page, account: Account): Promise<void> {
  const conversation = await account.chat(
    "Show me. [[script tokens=60 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]",
  );
  await openInApp(page, `/c/${conversation}`);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  const last = messages(page).last();
  const thought = last.getByRole("button", { name: /thought|reason/i }).first();
  expect(await thought.getAttribute("aria-expanded")).toBe("false");
  await thought.press("Enter");
  expect(await thought.getAttribute("aria-expanded")).toBe("true");
  await last
    .getByText(/calculat/i)
    .first()
    .waitFor();
  await last
    .getByText(/failed/i)
    .first()
    .waitFor();
  const code = last.locator("[data-code]").filter({ hasText: "package main" }).first();
  const colours = () =>
    code.evaluate(
      (element) => new Set([...element.querySelectorAll("span")].map((span) => getComputedStyle(span).color)).size,
    );
  await expect.poll(colours, { message: "colours of the code" }).toBeGreaterThan(3);
  await last
    .getByRole("button", { name: /copy code/i })
    .first()
    .click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain("package main");
}

/** Text typed into a new chat before the outbox is read is saved. */
async function typeBeforeOutboxIsRead(page: Page, account: Account): Promise<void> {
  await page.addInitScript(() => {
    const open = IDBFactory.prototype.open;
    IDBFactory.prototype.open = function (...names: Parameters<IDBFactory["open"]>) {
      const request = open.apply(this, names);
      // The database opens, but the event is never delivered.
      Object.defineProperty(request, "onsuccess", { set() {} });
      return request;
    };
  });
  await page.goto(`${url}/`);
  await composer(page).fill("Quick words");
  await page.waitForURL(/\/c\/conv_/);
  await expect.poll(() => draftOf(account, page.url().split("/c/")[1]!)).toBe("Quick words");
}

/** During an answer, a message can be queued or steer it, and its current state is shown. */
async function queueAndSteer(page: Page, account: Account): Promise<void> {
  const answer = await pausedAnswer();
  const { conversation } = await account.startTurn(answer.text);
  await openInApp(page, `/c/${conversation}`);
  await stop(page).waitFor();
  const box = composer(page);
  await box.fill("Queued: what is 6*7?");
  await box.press("Enter");
  await page.getByText("Sends after this answer").waitFor();
  await box.fill("Shorter, please.");
  await box.press("ControlOrMeta+Enter");
  await page.getByText("Changing the answer now").first().waitFor();
  await answer.release();
  await messages(page).nth(1).getByText("Shorter, please.", { exact: true }).waitFor();
  await page
    .getByText(/\b42\b/)
    .first()
    .waitFor();
  await stop(page).waitFor({ state: "hidden" });
  const all = await stored(account, conversation);
  expect(all.map((m) => `${m.role} ${m.status}`)).toEqual([
    "user complete",
    "assistant complete",
    "user complete",
    "assistant complete",
  ]);
  expect(all[1]!.parts.some((part) => part.kind === "steering")).toBe(true);
}

/** Esc stops the answer; its text is kept and marked as stopped. */
async function stopByKeyboard(page: Page, account: Account): Promise<void> {
  const { conversation } = await account.startTurn((await pausedAnswer()).text);
  await openInApp(page, `/c/${conversation}`);
  await stop(page).waitFor();
  await composer(page).press("Escape");
  await stop(page).waitFor({ state: "hidden" });
  const last = (await stored(account, conversation)).at(-1)!;
  expect(last.status).toBe("cancelled");
  await messages(page)
    .last()
    .getByText(/stopped/i)
    .first()
    .waitFor();
}

/** Held messages are sent when the user releases them, and are edited in their place. */
async function releaseHeldMessages(page: Page, account: Account): Promise<void> {
  const { conversation } = await account.startTurn((await pausedAnswer()).text);
  for (const text of ["What is 6*7?", "And something later."])
    await account.request("POST", "/chat", {
      conversation_id: conversation,
      input: [{ type: "text", text }],
      if_busy: "queue",
    });
  await openInApp(page, `/c/${conversation}`);
  await stop(page).waitFor();
  await composer(page).press("Escape");
  const items = page.getByRole("region", { name: "Up next" }).getByRole("listitem");
  const later = items.filter({ hasText: "And something later." });
  await later.getByText(/^On hold/).waitFor();
  await later.getByRole("button", { name: "Edit" }).press("Enter");
  const field = items.getByRole("textbox");
  await expectFocus(field);
  await field.fill("And something much later.");
  await field.press("Enter");
  const edited = items.filter({ hasText: "And something much later." });
  await edited.getByText(/^On hold/).waitFor();
  await items.filter({ hasText: "What is 6*7?" }).getByRole("button", { name: "Send now" }).press("Enter");
  await messages(page)
    .last()
    .getByText(/\b42\b/)
    .first()
    .waitFor();
  await expect.poll(() => items.count()).toBe(1);
  await edited.waitFor();
  const queue = await account.read<{ data: { state: string }[] }>(`/conversations/${conversation}/follow-ups`);
  expect(queue.data.map(({ state }) => state)).toEqual(["started", "held"]);
}

/** A held message shows its current state if another device sent it in the meantime. */
async function showMessageSentElsewhere(page: Page, account: Account): Promise<void> {
  const { conversation, turn } = await account.startTurn((await pausedAnswer()).text);
  await account.request("POST", "/chat", {
    conversation_id: conversation,
    input: [{ type: "text", text: "What is 6*7?" }],
    if_busy: "queue",
  });
  await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn });
  await openInApp(page, `/c/${conversation}`);
  const release = page.getByRole("button", { name: "Send now" });
  await release.waitFor();
  await page.route(`${url}/conversations/*/follow-ups/*`, async (route) => {
    const [item] = (
      await account.read<{ data: { follow_up_id: string; version: number }[] }>(
        `/conversations/${conversation}/follow-ups`,
      )
    ).data;
    await account.request("PATCH", `/conversations/${conversation}/follow-ups/${item!.follow_up_id}`, {
      state: "queued",
      version: item!.version,
    });
    await route.continue();
  });
  await release.press("Enter");
  await page.getByText(/This was changed on another device/).waitFor();
  await messages(page)
    .last()
    .getByText(/\b42\b/)
    .first()
    .waitFor();
  await release.waitFor({ state: "hidden" });
  await page.unrouteAll();
}

/** After a reload, a streaming answer continues without a gap or a repetition. */
async function continueAfterReload(page: Page, account: Account): Promise<void> {
  const answer = await pausedAnswer(150);
  const { conversation } = await account.startTurn(answer.text);
  await openInApp(page, `/c/${conversation}`);
  await stop(page).waitFor();
  await page.reload();
  await stop(page).waitFor();
  await answer.release();
  await stop(page).waitFor({ state: "hidden" });
  const text = (await stored(account, conversation))[1]!.parts.map((part) => part.text ?? "").join("");
  const shown = await messages(page).last().innerText();
  for (const sentence of text.split(/(?<=\.)\s+/).slice(0, 20))
    expect(shown.replace(/\s+/g, " ")).toContain(sentence.replace(/\s+/g, " ").trim());
  expect(await messages(page).count()).toBe(2);
}

/** A streaming answer does not move a reader who scrolled up; a button jumps to the end. */
async function scrollUpDuringAnswer(page: Page, account: Account): Promise<void> {
  const conversation = await account.chat("Hello! [[script tokens=900 ttft=0ms interval=0ms]]");
  const answer = await pausedAnswer(20_000);
  await account.startTurn(answer.text, { conversation_id: conversation });
  await openInApp(page, `/c/${conversation}`);
  await stop(page).waitFor();
  const scroller = page.locator("[data-scroll]");
  await atEnd(page);
  await scroller.evaluate((element) => element.scrollTo(0, 0));
  const pill = page.getByRole("button", { name: /Jump to latest/ });
  await pill.waitFor();
  const before = await scroller.evaluate((element) => element.scrollTop);
  const length = async () => (await messages(page).last().innerText()).length;
  const target = (await length()) + 80;
  await answer.release();
  await expect.poll(length).toBeGreaterThan(target);
  expect(Math.abs((await scroller.evaluate((element) => element.scrollTop)) - before)).toBeLessThan(4);
  await pill.click();
  await expect
    .poll(() => scroller.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight))
    .toBeLessThan(60);
  await stop(page).click();
}
