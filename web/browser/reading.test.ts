// Tests of reading a conversation: the scroll position while it grows and changes, and the parts of an answer.
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  atEnd,
  expectFocus,
  fast,
  waitForAnswerEnd,
  focusedMessage,
  intercept,
  messages,
  scroller,
  send,
  stored,
} from "./conversation-page";
import { desktop, hold, phone, sharedAccount, url, BrowserWindow, withBrowser } from "./harness";
import { FaultProxy } from "./fault-proxy";

withBrowser();

/** Returns the distance of an element from the top of the visible part of the conversation, in pixels. */
const offsetOf = (what: Locator) =>
  what.evaluate(
    (element) => element.getBoundingClientRect().top - element.closest("[data-scroll]")!.getBoundingClientRect().top,
  );
const scrolled = (page: Page) => scroller(page).evaluate((element) => element.scrollTop);

describe("the scroll position", () => {
  test("13 a sent message scrolls to the top and stays there while its answer fits below, on a desktop and a phone", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    for (const viewport of [desktop, phone]) {
      await page.setViewportSize(viewport);
      const conversation = await account.chat(`First. ${fast(400)}`);
      await page.goto(`${url}/c/${conversation}`);
      await messages(page).nth(1).waitFor();
      await scroller(page).evaluate((element) => element.scrollTo(0, 0));
      await send(page, "Hello!");
      const question = messages(page).nth(2);
      await expect.poll(async () => Math.abs(await offsetOf(question))).toBeLessThan(20);
      await messages(page)
        .nth(3)
        .getByText(/It is good to hear from you/)
        .waitFor();
      await waitForAnswerEnd(page);
      await expect.poll(() => stored(account, conversation).then((all) => all.at(-1)!.status)).toBe("complete");
      expect(Math.abs(await offsetOf(question))).toBeLessThan(20);
    }
    await visit.close();
  });

  test("13 messages from another tab do not move the reader; a button shows their number", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`First. ${fast(900)}`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await messages(visit.page).nth(1).waitFor();
    await atEnd(visit.page);
    await scroller(visit.page).evaluate((element) => element.scrollTo(0, 0));
    await visit.page.getByRole("button", { name: "Jump to latest", exact: true }).waitFor();
    const second = await visit.tab(`/c/${conversation}`);
    await messages(second).nth(1).waitFor();
    await send(second, "Hello!");
    await visit.page.getByRole("button", { name: "Jump to latest (2 new)", exact: true }).waitFor();
    await messages(visit.page)
      .nth(3)
      .getByText(/It is good to hear from you/)
      .waitFor();
    await waitForAnswerEnd(visit.page);
    expect(await scrolled(visit.page)).toBeLessThan(4);
    await visit.close();
  });

  test("13 visible messages keep their position when older messages are added above them", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`Number 0. ${fast(5)}`);
    for (let i = 1; i < 55; i++) await account.chat(`Number ${i}. ${fast(5)}`, { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(99).waitFor();
    const requests = await intercept(page, "GET", /\/messages\?.*cursor=/);
    await atEnd(page);
    await scroller(page).evaluate((element) => element.scrollTo(0, 700));
    await expect.poll(() => requests.length).toBe(1);
    expect(await messages(page).count()).toBe(100);
    const visible = messages(page).filter({ hasText: /Number 9\./ });
    const before = await offsetOf(visible);
    await requests[0]!.continue();
    await messages(page).nth(109).waitFor({ state: "attached" });
    expect(await scrolled(page)).toBeGreaterThan(700);
    expect(Math.abs((await offsetOf(visible)) - before)).toBeLessThan(4);
    await visit.close();
  });

  test("13 another version of a message appears at the same position and keeps the focus", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`One. ${fast(300)}`);
    await account.chat(`Two. ${fast(900)}`, { conversation_id: conversation });
    const second = (await stored(account, conversation))[2]!.message_id;
    await account.chat(`Two, otherwise. ${fast(600)}`, {
      conversation_id: conversation,
      branch: { message_id: second, mode: "edit" },
    });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const question = messages(page).nth(2);
    await question.getByText(/^Two, otherwise\./).waitFor();
    await atEnd(page);
    await question.evaluate((element) => {
      const view = element.closest("[data-scroll]")!;
      view.scrollBy(0, element.getBoundingClientRect().top - view.getBoundingClientRect().top - 200);
    });
    await expect.poll(async () => Math.abs((await offsetOf(question)) - 200)).toBeLessThan(4);
    for (const [button, text] of [
      ["Previous version", /^Two\. /],
      ["Next version", /^Two, otherwise\./],
    ] as const) {
      await question.getByRole("button", { name: button }).press("Enter");
      await question.getByText(text).waitFor();
      expect(Math.abs((await offsetOf(question)) - 200)).toBeLessThan(4);
      await expect.poll(() => focusedMessage(page)).toBe(2);
    }
    // Scrolls in the frame in which the button is pressed, and again before the other version is loaded.
    const requests = await intercept(page, "PUT", /active-branch/);
    await question.getByRole("button", { name: "Previous version" }).evaluate((button: HTMLElement) => {
      button.closest("[data-scroll]")!.scrollBy(0, 40);
      button.focus();
      button.click();
    });
    await expect.poll(() => requests.length).toBe(1);
    await scroller(page).evaluate((element) => element.scrollBy(0, 40));
    await expect.poll(async () => Math.abs((await offsetOf(question)) - 120)).toBeLessThan(4);
    await page.route(/active-branch/, (route) => route.continue()); // a request that repeats this one
    await requests[0]!.continue();
    await question.getByText(/^Two\. /).waitFor();
    await expect.poll(() => focusedMessage(page)).toBe(2);
    expect(Math.abs((await offsetOf(question)) - 120)).toBeLessThan(4);
    await visit.close();
  });

  test("13 a response that is older than a switch to another version does not undo it", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`One. ${fast(5)}`);
    const first = (await stored(account, conversation))[0]!.message_id;
    await account.chat(`One, otherwise. ${fast(5)}`, {
      conversation_id: conversation,
      branch: { message_id: first, mode: "edit" },
    });
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Versions" });
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    const marked = await intercept(page, "PUT", /\/read$/);
    await page.goto(`${url}/c/${conversation}`);
    const question = messages(page).first();
    await question.getByText(/^One, otherwise\./).waitFor();
    await expect.poll(() => marked.length).toBe(1);
    const response = await marked[0]!.fetch();
    await question.getByRole("button", { name: "Previous version" }).press("Enter");
    await question.getByText(/^One\. /).waitFor();
    await page.evaluate(() => {
      new MutationObserver(() => {
        if (document.body.innerText.includes("One, otherwise.")) document.body.dataset["undone"] = "true";
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const refetched = page.waitForResponse(/\/conversations\?/); // follows when the response was processed
    await marked[0]!.fulfill({ response });
    await refetched;
    await question.getByText(/^One\. /).waitFor();
    expect(await page.locator("body").getAttribute("data-undone")).toBeNull();
    await visit.close();
  });
});

describe("the parts of an answer", () => {
  test("18 tool calls show elapsed seconds and arguments; after a failed one the answer continues", async () => {
    const account = await sharedAccount();
    const network = await FaultProxy.start();
    const visit = await BrowserWindow.open("/", account, { proxy: network.proxy });
    const { page } = visit;
    network.hold(/^event: tool\.completed$/m);
    await send(
      page,
      "Work it out. [[script tokens=150 ttft=10ms interval=20ms tool=calculate:10:ok tool=calculate:10:fail]]",
    );
    const running = page.getByRole("button", { name: /^Calculate\s*Running/ }).first();
    await running.getByText(/^([2-9]|\d\d) s$/).waitFor();
    network.release();
    await page.getByRole("button", { name: /^Calculate\s*Done/ }).waitFor();
    const failed = page.getByRole("button", { name: /^Calculate\s*Failed/ });
    await failed.getByText("Cannot calculate: division by zero.").waitFor(); // the folded line has the reason
    await waitForAnswerEnd(page);
    await failed.press("Enter");
    expect(await failed.getAttribute("aria-expanded")).toBe("true");
    const answer = messages(page).last();
    await answer.getByText("Arguments").waitFor();
    expect(await answer.getByRole("definition").innerText()).toBe("1/0");
    await answer.locator("[data-details]").getByText("Cannot calculate: division by zero.").waitFor();
    await answer.getByText(/The ruddy turnstone/).waitFor();
    const conversation = page.url().split("/c/")[1]!;
    expect((await stored(account, conversation)).at(-1)!.status).toBe("complete");
    await visit.close();
    await network.close();
  });

  test("17 reasoning is a folded line, which shows the elapsed seconds while it lasts", async () => {
    const account = await sharedAccount();
    const name = crypto.randomUUID();
    const release = await hold(name);
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await send(page, `Think. [[script tokens=30 ttft=10ms interval=10ms reasoning=30 hold=0:${name}]]`);
    const thinking = page.getByRole("button", { name: /^Thinking/ });
    await thinking.getByText(/^\d+ s$/).waitFor();
    expect(await thinking.getAttribute("aria-expanded")).toBe("false");
    await release();
    const thought = page.getByRole("button", { name: /^Thought for \d+ s$/ });
    await thought.waitFor();
    await waitForAnswerEnd(page);
    expect(await thought.getAttribute("aria-expanded")).toBe("false");
    await thought.press("Enter");
    await messages(page)
      .last()
      .getByRole("group", { name: "Thoughts" })
      .getByText(/Reading the question once more/)
      .waitFor();
    await visit.close();
  });

  test("20 long code is folded, and can be copied completely, saved, wrapped and unfolded", async () => {
    const source = [...Array.from({ length: 47 }, (_, i) => `n${i + 1}`), `long = "${"ab ".repeat(45)}"`].join("\n");
    const account = await sharedAccount();
    const conversation = await account.chat(`Lines:\n\`\`\`python\n${source}\n\`\`\`\nEnd`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    const block = messages(page).nth(1).getByRole("figure");
    await block.getByText("Python", { exact: true }).waitFor();
    await block.getByText("n24", { exact: true }).waitFor();
    expect(await block.getByText("n25", { exact: true }).count()).toBe(0);
    await block.getByRole("button", { name: "Copy code" }).press("Enter");
    await block.getByRole("button", { name: "Copied" }).waitFor();
    await expect.poll(async () => (await page.evaluate(() => navigator.clipboard.readText())).trim()).toBe(source);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      block.getByRole("button", { name: "Download" }).press("Enter"),
    ]);
    expect(file.suggestedFilename()).toBe("code.py");
    expect(readFileSync(await file.path(), "utf8").trim()).toBe(source);

    await block.getByRole("button", { name: "Show all 48 lines" }).press("Enter");
    const text = block.getByRole("group", { name: "Code: Python" });
    await expectFocus(text);
    await text.getByText("n47", { exact: true }).waitFor();
    expect((await text.innerText()).trim().split(/\n+/).join("\n"), "line numbers are not text").toBe(source);
    expect(
      await text
        .getByText("n47", { exact: true })
        .evaluate((line) => getComputedStyle(line.closest("code > span")!, "::before").content),
    ).toBe("counter(line)");

    const tooWide = () => text.evaluate((element) => element.scrollWidth - element.clientWidth);
    expect(await tooWide()).toBeGreaterThan(20);
    const wrap = block.getByRole("button", { name: "Wrap long lines" });
    await wrap.press("Enter");
    expect(await wrap.getAttribute("aria-pressed")).toBe("true");
    expect(await tooWide()).toBeLessThanOrEqual(0);
    await visit.close();
  });
});
