// Tests of the menu of a message: quotes, branches in a new conversation, shares up to a message, reading aloud; and copies as
// formatted text.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { composer, expectFocus, intercept, mainHeading, messages } from "./conversation-page";
import { Account, BrowserWindow, url, withBrowser } from "./harness";
import { importConversation } from "./long-conversation";

withBrowser();

const texts = [
  "Why are there two tides?",
  "The **moon** pulls on [both sides](https://example.org/moon).\n\n```js\nconst tides = 2;\n```\n\nThe sun pulls too. It is far.\n\n- [x] done[^1]\n\n[^1]: Twice.",
  "And the winds?",
  "They come from the sun.",
];

async function open(): Promise<{ visit: BrowserWindow; page: Page; account: Account; conversation: string }> {
  const account = await Account.register();
  const conversation = await importConversation(account, "Tides", texts);
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  await page.addInitScript(() => {
    const spoken: string[] = [];
    const replace = (name: string, value: unknown) => Object.defineProperty(window, name, { value });
    replace("spoken", spoken);
    replace("speechSynthesis", {
      cancel: () => spoken.push("-"),
      speak: ({ text, lang }: { text: string; lang: string }) => spoken.push(`${lang}: ${text}`),
    });
    replace(
      "SpeechSynthesisUtterance",
      class {
        constructor(readonly text: string) {}
      },
    );
  });
  await page.goto(`${url}/c/${conversation}`);
  await messages(page).nth(3).waitFor();
  return { visit, page, account, conversation };
}

async function choose(page: Page, message: number, item: string): Promise<void> {
  await messages(page).nth(message).hover();
  await messages(page).nth(message).getByRole("button", { name: "More actions" }).press("Enter");
  await page.getByRole("menuitem", { name: item, exact: true }).press("Enter");
}

describe("the menu of a message", () => {
  test("opens by a key that was pressed while its code was loading, and says when that fails", async () => {
    const account = await Account.register();
    const conversation = await importConversation(account, "Tides", texts);
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    const code = await intercept(page, "GET", /\/assets\/message-\w+-[^/]*\.js$/);
    await page.goto(`${url}/c/${conversation}`);
    const button = messages(page).first().getByRole("button", { name: "More actions" });
    await messages(page).first().hover();
    await button.press("Enter");
    await expect.poll(() => code.length).toBe(1);
    await code[0]!.abort();
    await page.getByText("This part of the app couldn't be loaded.").waitFor();
    await button.press("Enter");
    await expect.poll(() => code.length).toBe(2);
    await code[1]!.continue();
    const items = page.getByRole("menuitem");
    await expectFocus(items.filter({ hasText: /^Quote$/ }));
    await page.keyboard.press("ArrowDown");
    await expectFocus(items.nth(1));
    await page.keyboard.press("Escape");
    await expectFocus(button);
    await visit.close();
  });

  test("quotes the selection, or the whole message, in the composer", async () => {
    const { visit, page } = await open();
    await composer(page).fill("About this:");
    await choose(page, 3, "Quote");
    await expectFocus(composer(page));
    await expect.poll(() => composer(page).inputValue()).toBe("About this:\n\n> They come from the sun.\n\n");
    await composer(page).fill("");
    await messages(page).nth(1).getByText("The sun pulls too.").selectText();
    await choose(page, 1, "Quote selection");
    await expect.poll(() => composer(page).inputValue()).toBe("> The sun pulls too. It is far.\n\n");
    await visit.close();
  });

  test("a quote of a selection is Markdown, without what belongs to the page", async () => {
    const account = await Account.register();
    const answer = [
      "Two **tides** a day, $x^2$ in `code`, [why](https://example.org/why)[^1].",
      "```js\nconst a = 1;\n\n\nconst b = 2;\n```",
      "| a | b |\n|---|---|\n| 1 | 2 |",
      "- one\n- two\n  - deep\n    - deeper\n- [x] done",
      "> quoted",
      "مرحبا بالعالم.",
      "$$x_1$$",
      "[^1]: A note.",
    ].join("\n\n");
    const conversation = await importConversation(account, "Quotes", ["Why?\nAnd when?", answer]);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const message = messages(page).nth(1);
    await message.locator("annotation").nth(1).waitFor({ state: "attached" });
    const select = (selector: string, at = 0) =>
      page.evaluate(
        ([path, nth]) => {
          const element = document.querySelectorAll("[data-row]")[nth]!.querySelector(path);
          getSelection()!.selectAllChildren(element ?? document.querySelectorAll("[data-row]")[nth]!);
        },
        [selector, at] as const,
      );
    const quote = async (nth = 1) => {
      await messages(page).nth(nth).hover();
      await messages(page).nth(nth).getByRole("button", { name: "More actions" }).click(); // with the mouse
      await page.getByRole("menuitem", { name: "Quote selection" }).click();
      await expect.poll(() => composer(page).inputValue()).not.toBe("");
      const text = await composer(page).inputValue();
      await composer(page).fill("");
      return text.replace(/^> ?/gm, "").trim();
    };
    await select("nothing", 1); // the whole row
    expect(await quote()).toBe(
      [
        "Two **tides** a day, $x^2$ in `code`, [why](https://example.org/why)1.",
        "```\nconst a = 1;\n\n\nconst b = 2;\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "- one\n- two\n  - deep\n    - deeper\n- [x] done",
        "> quoted",
        "مرحبا بالعالم.",
        "$$x_1$$",
        "1. A note.",
      ].join("\n\n"),
    );
    await select("tbody", 1);
    expect(await quote()).toBe("| 1 | 2 |");
    await select(".code-lines", 1);
    expect(await quote()).toBe("```\nconst a = 1;\n\n\nconst b = 2;\n```");
    await select(".code-lines > span", 1);
    expect(await quote()).toBe("const a = 1;");
    await select("p", 0);
    expect(await quote(0)).toBe("Why?\nAnd when?");
    await message.getByText("مرحبا").click({ clickCount: 3 });
    expect(await quote()).toBe("مرحبا بالعالم.");
    await visit.close();
  });

  test("24 branches in a new conversation, which has the messages up to this one", async () => {
    const { visit, page, account, conversation } = await open();
    await choose(page, 1, "Branch in a new conversation");
    await mainHeading(page).getByText("Tides (copy)").waitFor();
    await expect.poll(() => messages(page).count()).toBe(2);
    const { data } = await account.read<{ data: object[] }>(`/conversations/${conversation}/messages`);
    expect(data.length).toBe(4);
    await visit.close();
  });

  test("24 a page that is opened while a conversation is being copied stays open", async () => {
    const { visit, page } = await open();
    const copies = await intercept(page, "POST", "**/branches");
    await choose(page, 1, "Branch in a new conversation");
    await expect.poll(() => copies.length).toBe(1);
    await page.getByRole("link", { name: "Library" }).click();
    await mainHeading(page).getByText("Library", { exact: true }).waitFor();
    await copies[0]!.continue();
    await page.getByRole("link", { name: "Tides (copy)" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/library");
    await visit.close();
  });

  test("33 shares the conversation up to this message", async () => {
    const { visit, page, account } = await open();
    await choose(page, 1, "Share up to here");
    const dialog = page.getByRole("dialog", { name: "Share this conversation" });
    await dialog.getByRole("button", { name: "Create link" }).click();
    const link = await dialog.getByRole("textbox", { name: "Link" }).inputValue();
    const shared = await (await fetch(link)).text();
    expect(shared).toContain("both sides");
    expect(shared).not.toContain("winds");
    expect((await account.read<{ data: object[] }>("/shares")).data.length).toBe(1);
    await visit.close();
  });

  test("reads a message aloud sentence by sentence, and stops", async () => {
    const { visit, page } = await open();
    const spoken = () => page.evaluate(() => (window as unknown as { spoken: string[] }).spoken);
    await choose(page, 1, "Read aloud");
    await expect
      .poll(spoken)
      .toEqual([
        "-",
        "en: The moon pulls on both sides.",
        "en: const tides = 2;",
        "en: The sun pulls too.",
        "en: It is far.",
        "en: - [x] done[1]",
        "en: [1] Twice.",
      ]);
    await choose(page, 1, "Stop reading");
    await expect.poll(async () => (await spoken()).at(-1)).toBe("-");
    await visit.close();
  });

  test("20 an answer is copied as Markdown and as formatted text, and code by a button with a label", async () => {
    const { visit, page } = await open();
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    const answer = messages(page).nth(1);
    const copied = (type: string) =>
      page.evaluate(async (kind) => {
        const [item] = await navigator.clipboard.read();
        return item!.types.includes(kind) ? await (await item!.getType(kind)).text() : "";
      }, type);
    await answer.hover();
    await answer.getByRole("button", { name: "Copy as Markdown" }).press("Enter");
    await expect.poll(() => copied("text/plain")).toBe(texts[1]);
    const html = await copied("text/html");
    expect(html).toContain("<strong>moon</strong>");
    expect(html).toContain('<a href="https://example.org/moon">both sides</a>');
    expect(html).toContain("<pre><code>const tides = 2;</code></pre>");
    expect(html).not.toMatch(/class=|<button|<svg|↩/);
    expect(html).toMatch(/☑ done.*<sup><a>1<\/a><\/sup>/s); // no link into this page
    const code = answer.getByRole("button", { name: "Copy code" });
    expect(await code.innerText()).toBe("Copy");
    await code.press("Enter");
    await expect.poll(() => copied("text/plain")).toBe("const tides = 2;");
    await visit.close();
  });
});
