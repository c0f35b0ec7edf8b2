// Tests of a conversation through the user interface, by keyboard and accessible names.
import { describe, expect, test } from "vitest";
import { atEnd, composer, pausedAnswer, messages, stop, stored } from "./conversation-page";
import { Account, phone, url, BrowserWindow, withBrowser } from "./harness";

withBrowser();

async function draftOf(account: Account, conversation: string): Promise<string> {
  return (await account.read<{ draft: { content: string } }>(`/conversations/${conversation}`)).draft.content;
}

describe("writing", () => {
  test("1 a draft is saved while typing and shown on other devices, also in new chats and during answers", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    await composer(visit.page).fill("A thought that is not finished");
    await visit.page.waitForURL(/\/c\/conv_/);
    const conversation = visit.page.url().split("/c/")[1]!;
    await expect.poll(() => draftOf(account, conversation)).toBe("A thought that is not finished");
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await expect.poll(() => composer(mobile.page).inputValue()).toBe("A thought that is not finished");
    await visit.page.reload();
    await expect.poll(() => composer(visit.page).inputValue()).toBe("A thought that is not finished");
    await composer(visit.page).fill((await pausedAnswer()).text);
    await composer(visit.page).press("Enter");
    await stop(visit.page).waitFor();
    await composer(visit.page).fill("Meanwhile");
    await expect.poll(() => draftOf(account, conversation)).toBe("Meanwhile");
    await visit.close();
    await mobile.close();
  });

  test("1 text typed into a new chat before the outbox is read is saved", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await page.addInitScript(() => {
      const open = IDBFactory.prototype.open;
      IDBFactory.prototype.open = function (...names: Parameters<IDBFactory["open"]>) {
        const request = open.apply(this, names);
        // The database opens, but the event is never delivered.
        Object.defineProperty(request, "onsuccess", { set() {} });
        return request;
      };
    });
    await page.reload();
    await composer(page).fill("Quick words");
    await page.waitForURL(/\/c\/conv_/);
    await expect.poll(() => draftOf(account, page.url().split("/c/")[1]!)).toBe("Quick words");
    await visit.close();
  });

  test("2 Enter sends, Shift+Enter adds a line, and keys of an input method are ignored", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const box = composer(visit.page);
    await box.click();
    await visit.page.keyboard.type("one");
    await visit.page.keyboard.press("Shift+Enter");
    await visit.page.keyboard.type("two");
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
    await visit.close();
  });

  test("5 a profile is chosen for the conversation with the keyboard", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await visit.page.getByRole("button", { name: /^Model profile/ }).focus();
    await visit.page.keyboard.press("Enter");
    await visit.page.getByRole("menuitemradio", { name: /^Coding/ }).press("Enter");
    await expect
      .poll(async () => (await account.read<{ profile: string }>(`/conversations/${conversation}`)).profile)
      .toBe("coding");
    await visit.close();
  });

  test("5 a menu that is still loading does not open after Esc", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    await page.route(/\/assets\/menu-content-[^/]*\.js$/, async (route) => {
      await gate;
      await route.continue();
    });
    await page.goto(`${url}/c/${conversation}`);
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
    await visit.close();
  });

  test("6 and 8 during an answer, a message can be queued or steer it, and its current state is shown", async () => {
    const account = await Account.register();
    const answer = await pausedAnswer();
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    const box = composer(visit.page);
    await box.fill("Queued: what is 6*7?");
    await box.press("Enter");
    await visit.page.getByText("Sends after this answer").waitFor();
    await box.fill("Shorter, please.");
    await box.press("ControlOrMeta+Enter");
    await visit.page
      .getByText(/Steering · applies/)
      .first()
      .waitFor();
    await answer.release();
    await messages(visit.page).nth(1).getByText("Shorter, please.", { exact: true }).waitFor();
    await visit.page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await stop(visit.page).waitFor({ state: "hidden" });
    const all = await stored(account, conversation);
    expect(all.map((m) => `${m.role} ${m.status}`)).toEqual([
      "user complete",
      "assistant complete",
      "user complete",
      "assistant complete",
    ]);
    expect(all[1]!.parts.some((part) => part.kind === "steering")).toBe(true);
    await visit.close();
  });

  test("9 Esc stops the answer; its text is kept and marked as stopped", async () => {
    const account = await Account.register();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    await composer(visit.page).press("Escape");
    await stop(visit.page).waitFor({ state: "hidden" });
    const last = (await stored(account, conversation)).at(-1)!;
    expect(last.status).toBe("cancelled");
    await messages(visit.page)
      .last()
      .getByText(/stopped/i)
      .first()
      .waitFor();
    await visit.close();
  });
});

describe("held messages", () => {
  test("are sent when the user releases them, or return to the composer", async () => {
    const account = await Account.register();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    for (const text of ["What is 6*7?", "And something later."])
      await account.request("POST", "/chat", {
        conversation_id: conversation,
        input: [{ type: "text", text }],
        if_busy: "queue",
      });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    await composer(visit.page).press("Escape");
    const items = visit.page.getByRole("region", { name: "Up next" }).getByRole("listitem");
    const later = items.filter({ hasText: "And something later." });
    await later.getByText(/^On hold/).waitFor();
    await later.getByRole("button", { name: "Edit" }).press("Enter");
    await expect.poll(() => composer(visit.page).inputValue()).toBe("And something later.");
    await later.waitFor({ state: "hidden" });
    await items.getByRole("button", { name: "Send now" }).press("Enter");
    await messages(visit.page)
      .last()
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await items.first().waitFor({ state: "hidden" });
    expect(await composer(visit.page).inputValue()).toBe("And something later.");
    const queue = await account.read<{ data: { state: string }[] }>(`/conversations/${conversation}/follow-ups`);
    expect(queue.data.map(({ state }) => state)).toEqual(["started", "cancelled"]);
    await visit.close();
  });

  test("show their current state if another device sent them in the meantime", async () => {
    const account = await Account.register();
    const { conversation, turn } = await account.startTurn((await pausedAnswer()).text);
    await account.request("POST", "/chat", {
      conversation_id: conversation,
      input: [{ type: "text", text: "What is 6*7?" }],
      if_busy: "queue",
    });
    await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const release = visit.page.getByRole("button", { name: "Send now" });
    await release.waitFor();
    await visit.page.route(`${url}/conversations/*/follow-ups/*`, async (route) => {
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
    await visit.page.getByText(/This was changed on another device/).waitFor();
    await messages(visit.page)
      .last()
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await release.waitFor({ state: "hidden" });
    await visit.close();
  });
});

describe("reading", () => {
  test("10 after a reload, a streaming answer continues without a gap or a repetition", async () => {
    const account = await Account.register();
    const answer = await pausedAnswer(150);
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    await visit.page.reload();
    await stop(visit.page).waitFor();
    await answer.release();
    await stop(visit.page).waitFor({ state: "hidden" });
    const text = (await stored(account, conversation))[1]!.parts.map((part) => part.text ?? "").join("");
    const shown = await messages(visit.page).last().innerText();
    for (const sentence of text.split(/(?<=\.)\s+/).slice(0, 20))
      expect(shown.replace(/\s+/g, " ")).toContain(sentence.replace(/\s+/g, " ").trim());
    expect(await messages(visit.page).count()).toBe(2);
    await visit.close();
  });

  test("13 a streaming answer does not move a reader who scrolled up; a button jumps to the end", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello! [[script tokens=900 ttft=0ms interval=0ms]]");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await messages(visit.page).last().waitFor();
    const answer = await pausedAnswer(20_000);
    await account.startTurn(answer.text, { conversation_id: conversation });
    await visit.page.reload();
    await stop(visit.page).waitFor();
    const scroller = visit.page.locator("[data-scroll]");
    await atEnd(visit.page);
    await scroller.evaluate((element) => element.scrollTo(0, 0));
    const pill = visit.page.getByRole("button", { name: /Jump to latest/ });
    await pill.waitFor();
    const before = await scroller.evaluate((element) => element.scrollTop);
    const length = async () => (await messages(visit.page).last().innerText()).length;
    const target = (await length()) + 80;
    await answer.release();
    await expect.poll(length).toBeGreaterThan(target);
    expect(Math.abs((await scroller.evaluate((element) => element.scrollTop)) - before)).toBeLessThan(4);
    await pill.click();
    await expect
      .poll(() => scroller.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight))
      .toBeLessThan(60);
    await stop(visit.page).click();
    await visit.close();
  });

  test("14 a conversation of 400 messages has few elements, and scrolling reaches the first message", async () => {
    const account = await Account.register();
    const conversation = await account.chat("The very first. [[script tokens=5 ttft=0ms interval=0ms]]");
    for (let i = 0; i < 199; i++)
      await account.chat(`Number ${i}. [[script tokens=5 ttft=0ms interval=0ms]]`, { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await messages(visit.page).last().waitFor();
    const first = visit.page.getByText("The very first.").first();
    await expect
      .poll(async () => {
        await visit.page.locator("[data-scroll]").evaluate((element) => element.scrollTo(0, 0));
        return first.count();
      })
      .toBeGreaterThan(0);
    expect(await visit.page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(3_000);
    await visit.close();
  });

  test("16 the routing notice names the profile and the reason, and offers Balanced instead", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    await composer(visit.page).fill(
      "Please fix the bug in src/main.go, the unit test panics with a nil pointer dereference",
    );
    await composer(visit.page).press("Enter");
    await visit.page
      .getByText(/Coding/)
      .first()
      .waitFor();
    await stop(visit.page).waitFor({ state: "hidden" });
    const balanced = visit.page.getByRole("button", { name: /Balanced/ }).first();
    await balanced.click();
    const conversation = visit.page.url().split("/c/")[1]!;
    await expect.poll(async () => (await stored(account, conversation)).at(-1)?.sibling_count).toBe(2);
    await visit.close();
  });

  test("17, 18 and 20 reasoning is folded, tool calls are shown, and code can be copied", async () => {
    const account = await Account.register();
    const conversation = await account.chat(
      "Show me. [[script tokens=60 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]",
    );
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    const last = messages(visit.page).last();
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
    await expect.poll(() => visit.page.evaluate(() => navigator.clipboard.readText())).toContain("package main");
    await visit.close();
  });

  test("23 editing and regenerating create another version; the chosen version is stored in the account", async () => {
    const account = await Account.register();
    const conversation = await account.chat("What is 6*7?");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const question = messages(visit.page).first();
    await question.hover();
    await question.getByRole("button", { name: /edit/i }).click();
    const field = question.getByRole("textbox");
    await field.fill("What is 6*8?");
    await question.getByRole("button", { name: /^send/i }).click();
    await visit.page
      .getByText(/\b48\b/)
      .first()
      .waitFor();
    await question.getByText("2/2").or(question.getByText("2 / 2")).first().waitFor();
    await question.getByRole("button", { name: /previous version/i }).click();
    await messages(visit.page)
      .last()
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await expect.poll(async () => (await stored(account, conversation))[0]!.parts[0]!.text).toBe("What is 6*7?");
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await messages(mobile.page)
      .last()
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await mobile.close();
    await messages(visit.page).last().hover();
    await messages(visit.page)
      .last()
      .getByRole("button", { name: /^regenerate$/i })
      .click();
    await expect.poll(async () => (await stored(account, conversation)).at(-1)!.sibling_count).toBe(2);
    await visit.close();
  });
});
