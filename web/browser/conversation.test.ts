// A conversation as a person has it, by the keyboard and by the names that a screen reader says.
import { describe, expect, test } from "vitest";
import { atEnd, composer, held, messages, stop, stored } from "./room";
import { Account, phone, url, Visit, withBrowser } from "./site";

withBrowser();

async function draftOf(account: Account, conversation: string): Promise<string> {
  return (await account.read<{ draft: { content: string } }>(`/conversations/${conversation}`)).draft.content;
}

describe("writing", () => {
  test("1 the draft is the account's: kept while typing, there on another device, also in a new chat and while streaming", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/", account);
    await composer(visit.page).fill("A thought that is not finished");
    await visit.page.waitForURL(/\/c\/conv_/);
    const conversation = visit.page.url().split("/c/")[1]!;
    await expect.poll(() => draftOf(account, conversation)).toBe("A thought that is not finished");
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    await expect.poll(() => composer(pocket.page).inputValue()).toBe("A thought that is not finished");
    await visit.page.reload();
    await expect.poll(() => composer(visit.page).inputValue()).toBe("A thought that is not finished");
    await composer(visit.page).fill((await held()).text);
    await composer(visit.page).press("Enter");
    await stop(visit.page).waitFor();
    await composer(visit.page).fill("Meanwhile");
    await expect.poll(() => draftOf(account, conversation)).toBe("Meanwhile");
    await visit.close();
    await pocket.close();
  });

  test("1 what is typed into a new chat before the outbox was read is saved, too", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/", account);
    const { page } = visit;
    await page.addInitScript(() => {
      const open = IDBFactory.prototype.open;
      IDBFactory.prototype.open = function (...names: Parameters<IDBFactory["open"]>) {
        const request = open.apply(this, names);
        // The database opens, and whoever waits for it never learns of it.
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

  test("2 Enter sends, Shift+Enter makes a line, and an input method keeps its keys", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const box = composer(visit.page);
    await box.click();
    await visit.page.keyboard.type("one");
    await visit.page.keyboard.press("Shift+Enter");
    await visit.page.keyboard.type("two");
    expect(await box.inputValue()).toBe("one\ntwo");
    await box.evaluate((element) => {
      element.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
      element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, isComposing: true }));
      element.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
      element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true } as KeyboardEventInit));
    });
    expect(await box.inputValue()).toBe("one\ntwo");
    await box.press("Enter");
    await expect.poll(() => box.inputValue()).toBe("");
    await expect.poll(async () => (await stored(account, conversation)).length).toBe(4);
    expect((await stored(account, conversation))[2]!.parts[0]!.text).toBe("one\ntwo");
    await visit.close();
  });

  test("5 a profile is picked for the conversation, by the keyboard", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    await visit.page.getByRole("button", { name: /^Answer with/ }).focus();
    await visit.page.keyboard.press("Enter");
    await visit.page.getByRole("menuitemradio", { name: /^Coding/ }).press("Enter");
    await expect.poll(async () => (await account.read<{ profile: string }>(`/conversations/${conversation}`)).profile).toBe("coding");
    await visit.close();
  });

  test("5 a menu that is still on its way is not wanted any more after Esc", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open("/settings", account);
    const { page } = visit;
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    await page.route(/\/assets\/menu-open-[^/]*\.js$/, async (route) => {
      await gate;
      await route.continue();
    });
    await page.goto(`${url}/c/${conversation}`);
    const button = page.getByRole("button", { name: /^Answer with/ });
    const asked = page.waitForRequest(/menu-open-/);
    await button.press("Enter");
    await asked;
    await page.keyboard.press("Escape");
    const loaded = page.waitForResponse(/menu-open-/);
    release();
    await (await loaded).finished();
    await composer(page).fill("Not behind a menu");
    await button.press("Enter");
    await page.getByRole("menuitemradio", { name: /^Coding/ }).waitFor();
    expect(await page.getByRole("menu").count()).toBe(1);
    await visit.close();
  });

  test("6 and 8 while an answer streams: queue, steer and interrupt, each with its receipt shown as it stands", async () => {
    const account = await Account.register();
    const answer = await held();
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    const box = composer(visit.page);
    await box.fill("Queued: what is 6*7?");
    await box.press("Enter");
    await visit.page.getByText("Next, when this answer is done").waitFor();
    await box.fill("Shorter, please.");
    await box.press("ControlOrMeta+Enter");
    await visit.page.getByText(/Steering: accepted/).first().waitFor();
    await answer.letGo();
    await messages(visit.page).nth(1).getByText("Shorter, please.", { exact: true }).waitFor({ timeout: 45_000 });
    await visit.page.getByText(/\b42\b/).first().waitFor({ timeout: 45_000 });
    await stop(visit.page).waitFor({ state: "hidden", timeout: 30_000 });
    const kept = await stored(account, conversation);
    expect(kept.map((m) => `${m.role} ${m.status}`)).toEqual(["user complete", "assistant complete", "user complete", "assistant complete"]);
    expect(kept[1]!.parts.some((part) => part.kind === "steering")).toBe(true);
    await visit.close();
  });

  test("9 Esc stops; what was said stays and is marked", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    await composer(visit.page).press("Escape");
    await stop(visit.page).waitFor({ state: "hidden", timeout: 20_000 });
    const last = (await stored(account, conversation)).at(-1)!;
    expect(last.status).toBe("cancelled");
    await messages(visit.page).last().getByText(/stopped/i).first().waitFor();
    await visit.close();
  });
});

describe("what is held", () => {
  test("goes on when it is sent, or comes back into the field", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    for (const text of ["What is 6*7?", "And something later."]) await account.ask("POST", "/chat", { conversation_id: conversation, input: [{ type: "text", text }], if_busy: "queue" });
    const visit = await Visit.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    await composer(visit.page).press("Escape");
    const items = visit.page.getByRole("region", { name: "What waits" }).getByRole("listitem");
    const later = items.filter({ hasText: "And something later." });
    await later.getByText(/^Held/).waitFor();
    await later.getByRole("button", { name: "Back into the composer" }).press("Enter");
    await expect.poll(() => composer(visit.page).inputValue()).toBe("And something later.");
    await later.waitFor({ state: "hidden" });
    await items.getByRole("button", { name: "Send now" }).press("Enter");
    await messages(visit.page).last().getByText(/\b42\b/).first().waitFor();
    await items.first().waitFor({ state: "hidden" });
    expect(await composer(visit.page).inputValue()).toBe("And something later.");
    const queue = await account.read<{ data: { state: string }[] }>(`/conversations/${conversation}/follow-ups`);
    expect(queue.data.map(({ state }) => state)).toEqual(["started", "cancelled"]);
    await visit.close();
  });

  test("that was sent from another device meanwhile is shown as it stands", async () => {
    const account = await Account.register();
    const { conversation, turn } = await account.begin((await held()).text);
    await account.ask("POST", "/chat", { conversation_id: conversation, input: [{ type: "text", text: "What is 6*7?" }], if_busy: "queue" });
    await account.ask("POST", "/chat/steering", { type: "cancel", turn_id: turn });
    const visit = await Visit.open(`/c/${conversation}`, account);
    const release = visit.page.getByRole("button", { name: "Send now" });
    await release.waitFor();
    await visit.page.route(`${url}/conversations/*/follow-ups/*`, async (route) => {
      const [item] = (await account.read<{ data: { follow_up_id: string; version: number }[] }>(`/conversations/${conversation}/follow-ups`)).data;
      await account.ask("PATCH", `/conversations/${conversation}/follow-ups/${item!.follow_up_id}`, { state: "queued", version: item!.version });
      await route.continue();
    });
    await release.press("Enter");
    await visit.page.getByText(/changed or sent elsewhere meanwhile/).waitFor();
    await messages(visit.page).last().getByText(/\b42\b/).first().waitFor();
    await release.waitFor({ state: "hidden" });
    await visit.close();
  });
});

describe("reading", () => {
  test("10 a reload in the middle of an answer goes on with it, without a gap or a repetition", async () => {
    const account = await Account.register();
    const answer = await held(150);
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    await stop(visit.page).waitFor();
    await visit.page.reload();
    await stop(visit.page).waitFor();
    await answer.letGo();
    await stop(visit.page).waitFor({ state: "hidden", timeout: 30_000 });
    const text = (await stored(account, conversation))[1]!.parts.map((part) => part.text ?? "").join("");
    const shown = await messages(visit.page).last().innerText();
    for (const sentence of text.split(/(?<=\.)\s+/).slice(0, 20)) expect(shown.replace(/\s+/g, " ")).toContain(sentence.replace(/\s+/g, " ").trim());
    expect(await messages(visit.page).count()).toBe(2);
    await visit.close();
  });

  test("13 a reader who scrolled up is left alone, and led back by a pill", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello! [[script tokens=900 ttft=0ms interval=0ms]]");
    const visit = await Visit.open(`/c/${conversation}`, account);
    await messages(visit.page).last().waitFor();
    const answer = await held(20_000);
    await account.begin(answer.text, { conversation_id: conversation });
    await visit.page.reload();
    await stop(visit.page).waitFor();
    const scroller = visit.page.locator("[data-scroll]");
    await atEnd(visit.page);
    await scroller.evaluate((element) => element.scrollTo(0, 0));
    const pill = visit.page.getByRole("button", { name: /Jump to latest/ });
    await pill.waitFor();
    const before = await scroller.evaluate((element) => element.scrollTop);
    const length = async () => (await messages(visit.page).last().innerText()).length;
    const grown = (await length()) + 80;
    await answer.letGo();
    await expect.poll(length, { timeout: 20_000 }).toBeGreaterThan(grown);
    expect(Math.abs((await scroller.evaluate((element) => element.scrollTop)) - before)).toBeLessThan(4);
    await pill.click();
    await expect.poll(() => scroller.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight)).toBeLessThan(60);
    await stop(visit.page).click();
    await visit.close();
  });

  test("14 four hundred messages: few elements, and the first is reached by scrolling", async () => {
    const account = await Account.register();
    const conversation = await account.chat("The very first. [[script tokens=5 ttft=0ms interval=0ms]]");
    for (let i = 0; i < 199; i++) await account.chat(`Number ${i}. [[script tokens=5 ttft=0ms interval=0ms]]`, { conversation_id: conversation });
    const visit = await Visit.open(`/c/${conversation}`, account);
    await messages(visit.page).last().waitFor();
    const first = visit.page.getByText("The very first.").first();
    await expect
      .poll(
        async () => {
          await visit.page.locator("[data-scroll]").evaluate((element) => element.scrollTo(0, 0));
          return first.count();
        },
        { timeout: 40_000 },
      )
      .toBeGreaterThan(0);
    expect(await visit.page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(3_000);
    await visit.close();
  });

  test("16 the routing notice says who answers and why, and offers Balanced instead", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/", account);
    await composer(visit.page).fill("Please fix the bug in src/main.go, the unit test panics with a nil pointer dereference");
    await composer(visit.page).press("Enter");
    await visit.page.getByText(/Coding/).first().waitFor();
    await stop(visit.page).waitFor({ state: "hidden", timeout: 30_000 });
    const again = visit.page.getByRole("button", { name: /Balanced/ }).first();
    await again.click();
    const conversation = visit.page.url().split("/c/")[1]!;
    await expect.poll(async () => (await stored(account, conversation)).at(-1)?.sibling_count, { timeout: 20_000 }).toBe(2);
    await visit.close();
  });

  test("17, 18 and 20 thoughts are folded, tools have a card, code can be copied", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Show me. [[script tokens=60 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]");
    const visit = await Visit.open(`/c/${conversation}`, account);
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    const last = messages(visit.page).last();
    const thought = last.getByRole("button", { name: /thought|reason/i }).first();
    expect(await thought.getAttribute("aria-expanded")).toBe("false");
    await thought.press("Enter");
    expect(await thought.getAttribute("aria-expanded")).toBe("true");
    await last.getByText(/calculat/i).first().waitFor();
    await last.getByText(/failed/i).first().waitFor();
    const code = last.locator("[data-code]").filter({ hasText: "package main" }).first();
    const colours = () => code.evaluate((element) => new Set([...element.querySelectorAll("span")].map((span) => getComputedStyle(span).color)).size);
    await expect.poll(colours, { message: "colours of the code" }).toBeGreaterThan(3);
    await last.getByRole("button", { name: /copy code/i }).first().click();
    await expect.poll(() => visit.page.evaluate(() => navigator.clipboard.readText())).toContain("package main");
    await visit.close();
  });

  test("23 editing makes another version beside the first, regenerating too; the switcher is the account's", async () => {
    const account = await Account.register();
    const conversation = await account.chat("What is 6*7?");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const question = messages(visit.page).first();
    await question.hover();
    await question.getByRole("button", { name: /edit/i }).click();
    const field = question.getByRole("textbox");
    await field.fill("What is 6*8?");
    await question.getByRole("button", { name: /^send/i }).click();
    await visit.page.getByText(/\b48\b/).first().waitFor({ timeout: 20_000 });
    await question.getByText("2/2").or(question.getByText("2 / 2")).first().waitFor();
    await question.getByRole("button", { name: /previous version/i }).click();
    await messages(visit.page).last().getByText(/\b42\b/).first().waitFor({ timeout: 20_000 });
    await expect.poll(async () => (await stored(account, conversation))[0]!.parts[0]!.text).toBe("What is 6*7?");
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    await messages(pocket.page).last().getByText(/\b42\b/).first().waitFor();
    await pocket.close();
    await messages(visit.page).last().hover();
    await messages(visit.page).last().getByRole("button", { name: /regenerate|answer again/i }).click();
    await expect.poll(async () => (await stored(account, conversation)).at(-1)!.sibling_count, { timeout: 20_000 }).toBe(2);
    await visit.close();
  });
});
