// Tests of the transcript: the tail of a streaming answer, right-to-left text, scrolling from the controls around it,
// the distances between messages, tool calls, code in user messages, finding text, and the size of the scripts.
import type { Locator } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  atEnd,
  composer,
  endless,
  expectFocus,
  fast,
  messages,
  pausedAnswer,
  replaceAnswers,
  scroller,
  send,
  sidebar,
  stop,
  stored,
  waitForAnswerEnd,
  waitForAnswerText,
} from "./conversation-page";
import { expectAccessible } from "./axe";
import { Account, BrowserWindow, desktop, hold, phone, sharedAccount, url, withBrowser } from "./harness";

withBrowser();

const boxOf = async (what: Locator) => (await what.boundingBox())!;

describe("editing the last message with ↑", () => {
  test("1 the previous version is shown as a message after the edit, not as an open editor", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`First wording. ${fast(20)}`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await composer(page).press("ArrowUp");
    const editor = page.getByRole("textbox", { name: "Edit your message" });
    await expectFocus(editor);
    await editor.fill(`Second wording. ${fast(20)}`);
    await editor.press("Enter");
    await expect
      .poll(async () => (await stored(account, conversation)).map(({ sibling_count }) => sibling_count))
      .toEqual([2, 1]);
    await waitForAnswerEnd(page);
    const question = messages(page).first();
    await question.getByText(/^Second wording/).waitFor();
    await question.getByRole("button", { name: "Previous version" }).press("Enter");
    await question.getByText(/^First wording/).waitFor();
    await question.getByText("1/2", { exact: true }).waitFor();
    expect(await editor.count()).toBe(0);
    // The next ↑ opens the editor of the version that is shown now.
    await composer(page).press("ArrowUp");
    await expectFocus(editor);
    expect(await editor.inputValue()).toContain("First wording.");
    await editor.press("Escape");
    await visit.close();
  });
});

/** Returns the elements of an answer that end with the mark of the streaming text, with their texts. */
const tails = (answer: Locator) =>
  answer
    .locator(".prose *, .prose, .code-lines > *")
    .evaluateAll((all) =>
      all
        .filter((element) => getComputedStyle(element, "::after").content === '""')
        .map((element) => `${element.tagName} ${(element.textContent ?? "").trimEnd().slice(-12)}`),
    );

describe("the look of an answer", () => {
  const text = [
    "H<sub>2</sub>O, <kbd>Esc</kbd>, ==marked==.[^a]",
    "> [!WARNING]\n> Look out.",
    "<details>\n<summary>More</summary>\n\nInside.\n\n</details>",
    "```diff\n-old\n+new\n```",
    "| Country | Characteristics | Notes |\n|-|-|-|\n| Germany | Donaudampfschifffahrtsgesellschaft | A long sentence about it. |",
    "[^a]: Its source.",
  ].join("\n\n");

  test("40 footnotes, alerts, sections, diffs and tables are shown as on the page of a share, on a phone", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`Hello! ${fast(5)}`);
    const visit = await BrowserWindow.open("/health", account, { viewport: phone });
    const { page } = visit;
    await replaceAnswers(page, [{ part_id: "p1", type: "text", text }]);
    await page.goto(`${url}/c/${conversation}`);
    const answer = messages(page).nth(1);
    await answer.locator("mark", { hasText: "marked" }).waitFor();
    const color = (what: Locator) => what.evaluate((element) => getComputedStyle(element).color);
    const [removed, added] = [answer.locator("[data-ink=deleted]"), answer.locator("[data-ink=inserted]")];
    expect(await color(removed)).not.toBe(await color(added));
    await answer.getByText("Inside.").waitFor({ state: "hidden" });
    await answer.getByText("More", { exact: true }).press("Enter");
    await answer.getByText("Inside.").waitFor();
    // A table scrolls in itself: no word in it is broken, and the page is not wider than the screen.
    const table = answer.getByRole("group", { name: "Table" });
    expect(await table.evaluate((group) => group.scrollWidth > group.clientWidth)).toBe(true);
    const word = answer.getByRole("cell", { name: "Donaudampfschifffahrtsgesellschaft" });
    expect(
      await word.evaluate((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
      }),
    ).toBe(1);
    expect(await scroller(page).evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
    await answer.getByRole("link", { name: "Footnote 1" }).press("Enter");
    await expectFocus(answer.getByRole("listitem").filter({ hasText: "Its source." }));
    await answer.getByRole("link", { name: "Back to the text" }).press("Enter");
    await expectFocus(answer.getByRole("link", { name: "Footnote 1" }));
    expect(page.url()).toBe(`${url}/c/${conversation}`);
    await expectAccessible(page, "an answer with footnotes and alerts");
    await visit.close();
  });

  test("40 code has colours while it streams", async () => {
    const account = await sharedAccount();
    const name = crypto.randomUUID();
    const release = await hold(name);
    const { conversation } = await account.startTurn(
      `Something. [[script tokens=20 ttft=0ms interval=0ms code=go hold=25:${name}]]`,
    );
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.locator("figure [data-live] [data-ink=keyword]").first().waitFor();
    await stop(page).waitFor(); // it has not ended
    await release();
    await waitForAnswerEnd(page);
    await page.locator("figure [data-ink=keyword]").first().waitFor();
    await visit.close();
  });
});

test("34 a printed conversation has its title and its messages alone, and nothing of them is clipped", async () => {
  const account = await sharedAccount();
  const conversation = await account.chat(`Hello! ${fast(5)}`);
  await account.request("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  const lines = Array.from({ length: 60 }, (_, at) => `line ${at}`);
  const text = `[A page](https://a.example/x) and https://b.example/y\n\n\`\`\`\n${lines.join("\n")} ${"wide ".repeat(80)}\n\`\`\`\n\n<details>\n<summary>More</summary>\n\nInside.\n\n</details>`;
  await replaceAnswers(page, [{ part_id: "p1", type: "text", text }]);
  await page.goto(`${url}/c/${conversation}`);
  await page.getByRole("button", { name: /^Show all/ }).waitFor();
  // The command of the menu prints the page that is shown.
  await page.evaluate(() => (window.print = () => window.dispatchEvent(new Event("beforeprint"))));
  await page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
  await page.getByRole("menuitem", { name: "Print or save as PDF" }).press("Enter");
  await page.getByText("line 59").waitFor();
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 700, height: 800 });
  await page.getByRole("heading", { level: 1, name: "Tides" }).waitFor();
  await page.getByText("Inside.").waitFor();
  for (const hidden of [composer(page), sidebar(page), page.getByRole("log").getByRole("button").first()])
    expect(await hidden.isVisible()).toBe(false);
  const clipped = await page
    .getByRole("log")
    .locator("*")
    .evaluateAll((all) =>
      all
        .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1)
        .map((one) => one.outerHTML.slice(0, 80)),
    );
  expect(clipped).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeGreaterThan(1_200);
  const after = (name: string) =>
    page.getByRole("link", { name }).evaluate((link) => getComputedStyle(link, "::after").content);
  expect(await after("A page")).toContain("https://a.example/x");
  expect(await after("https://b.example/y")).toBe("none");
  await page.emulateMedia({ media: null });
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  await page.getByRole("button", { name: /^Show all/ }).waitFor();
  await visit.close();
});

test("32 citations are numbers with a card of what they cite, which opens the file at that part", async () => {
  const account = await sharedAccount();
  const name = `harbour ${crypto.randomUUID()}.txt`;
  await account.storeFile(name, "The first line.\nThe harbour closes at nine.\nThe last line.\n");
  const stored = async () =>
    (await account.read<{ data: { file_id: string; filename: string; text_state: string }[] }>("/files")).data.find(
      ({ filename }) => filename === name,
    );
  await expect.poll(async () => (await stored())?.text_state).toBe("done");
  const file = (await stored())!.file_id;
  const text = "It closes at nine.[1:2] High water is at noon.[2] Not cited: [3:3].";
  const input = [
    { type: "text", text: "Hello!" },
    { type: "file", file_id: file },
  ];
  const conversation = await account.chat("", { input });
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  const citations = [
    { index: 1, title: name, marker: "[1:2]", file_id: file, offset: 16, length: 28 },
    { index: 2, title: "Tides", marker: "[2]", url: "https://www.tides.example/today" },
  ];
  await replaceAnswers(page, [{ part_id: "p1", type: "text", text, citations }]);
  await page.goto(`${url}/c/${conversation}`);
  const answer = messages(page).nth(1);
  const [passage, place] = [
    answer.getByRole("button", { name: `Source 1: ${name}` }),
    answer.getByRole("button", { name: "Source 2: Tides" }),
  ];
  await passage.waitFor();
  expect(await answer.locator(".prose").innerText()).toBe(
    "It closes at nine.1 High water is at noon.2 Not cited: [3:3].",
  );
  await place.hover();
  const card = page.getByRole("dialog");
  await card.getByRole("link", { name: "Tides" }).waitFor();
  await card.getByText("tides.example", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await card.waitFor({ state: "hidden" });
  await passage.press("Enter");
  await card.getByText("The harbour closes at nine.", { exact: true }).waitFor();
  await expectAccessible(page, "the card of a citation");
  await card.getByRole("button", { name: "Show in the file" }).press("Enter");
  await page.getByRole("dialog", { name }).locator("mark", { hasText: "The harbour closes at nine." }).waitFor();
  await page.keyboard.press("Escape");
  await page.emulateMedia({ media: "print" });
  for (const message of [messages(page).first(), answer])
    await message.getByRole("button", { name, exact: true }).waitFor();
  await visit.close();
});

describe("the tail of a streaming answer", () => {
  test("4 a paused answer shows a mark after its last word, then says that the model is still working", async () => {
    const account = await sharedAccount();
    const paused = await pausedAnswer();
    const { conversation } = await account.startTurn(paused.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waitForAnswerText(page);
    const answer = messages(page).nth(1);
    const lastWords = () =>
      answer.locator(".prose > :last-child").evaluate((last) => last.textContent!.trimEnd().slice(-12));
    // It pauses after 13 words.
    await expect
      .poll(() =>
        answer
          .locator(".prose")
          .innerText()
          .then((text) => text.trim().split(/\s+/).length),
      )
      .toBe(13);
    await expect.poll(async () => (await tails(answer)).join() === `P ${await lastWords()}`).toBe(true);
    const height = () => answer.evaluate((element) => element.getBoundingClientRect().height);
    const before = await height();
    const note = answer.getByText("The model is still working…", { exact: true });
    expect(await note.count()).toBe(0);
    await note.waitFor();
    await page
      .getByRole("status")
      .getByText("The model is still working…", { exact: true })
      .waitFor({ state: "attached" });
    expect(await height()).toBe(before);
    await paused.release();
    await note.waitFor({ state: "hidden" });
    await waitForAnswerEnd(page);
    await expect.poll(() => tails(answer)).toEqual([]);
    await visit.close();
  });

  test("4 the mark is at the last word of a list, a quote, a table and code", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`First. ${fast(10)}`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    let last = 1;
    for (const [kind, markdown, tail] of [
      ["a nested list", "- one\n  - two\n- three\n  - four", "LI four"],
      ["a quote", "> one\n>\n> two", "P two"],
      ["a table", "| a | b |\n|---|---|\n| one | two |\n| three |", "TD three"],
      ["a code block", "```text\none\ntwo", "SPAN two"],
      ["a code block in a list", "1. item\n   ```text\n   one\n   two", "SPAN two"],
    ] as const) {
      // The answer quotes the question, and pauses after its words: it is held at its fortieth token.
      const words = Array.from({ length: 40 }, (_, at) => `w${at}`);
      const count = markdown.split(/\s+/).length;
      const question = `${words.slice(0, 38 - count).join(" ")}\n\n${markdown} more words after it`;
      const release = await hold(question);
      await send(page, question);
      const answer = messages(page).nth((last += 2));
      await expect.poll(() => tails(answer), { message: kind }).toEqual([tail]);
      await release();
      await waitForAnswerEnd(page);
    }
    await visit.close();
  });
});

describe("right-to-left text", () => {
  test("5 Arabic lists, quotes and tables are laid out from right to left as a whole, and code from left to right", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(
      "س\n\n1. أولا\n2. English item\n3. `npm` ثالثا\n\n> اقتباس عربي\n>\n> ثم آخر\n\n| الاسم | العدد |\n|---|---|\n| تفاح | 12 |\n| خبز | 7 |\n\nنهاية",
    );
    await account.chat("س\n\n`f(x)` هي دالة\n\nنهاية", { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const answer = messages(page).nth(1);
    await answer.getByText("أولا").waitFor();
    const list = answer.locator("ol");
    const column = await boxOf(answer.locator(".prose"));
    for (const item of await list.locator("li").all()) {
      expect(await item.evaluate((element) => getComputedStyle(element).direction)).toBe("rtl");
      // The number is in the padding of the list, inside the column.
      const box = await boxOf(item);
      expect(box.x + box.width).toBeLessThan(column.x + column.width - 10);
    }
    // The English item reads from left to right, and starts next to its number.
    const english = await list
      .locator("li")
      .nth(1)
      .evaluate((item) => {
        const range = document.createRange();
        range.selectNodeContents(item);
        const style = getComputedStyle(item);
        return {
          gap: item.getBoundingClientRect().right - range.getBoundingClientRect().right,
          bidi: style.unicodeBidi,
        };
      });
    expect(english.gap).toBeLessThan(12);
    expect(english.bidi).toBe("plaintext");
    const quote = await answer.locator("blockquote").evaluate((element) => getComputedStyle(element).borderRightWidth);
    expect(quote).toBe("2px");
    const right = (text: string) =>
      answer
        .locator("th, td")
        .filter({ hasText: text })
        .evaluate((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return Math.round(range.getBoundingClientRect().right);
        });
    expect(await right("12")).toBe(await right("العدد"));
    // An inline code keeps its own direction.
    const code = messages(page).nth(3).locator("code", { hasText: "f(x)" });
    const style = (what: Locator) => what.evaluate((element) => getComputedStyle(element).direction);
    expect(await style(code)).toBe("ltr");
    expect(await style(code.locator(".."))).toBe("rtl");
    await visit.close();
  });

  test("5 in an Arabic app, values are next to their labels, and the composer starts from right to left", async () => {
    const account = await Account.register();
    const { version: _, ...settings } = await account.read<Record<string, unknown>>("/account/settings");
    await account.request("PUT", "/account/settings", { ...settings, language: "ar" });
    const conversation = await account.chat("What is 48 * 365 + 17?");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const answer = messages(page).nth(1);
    await answer.getByRole("button", { name: /Calculate/ }).press("Enter");
    const details = answer.locator("[data-details]");
    const textBox = (what: Locator) =>
      what.evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        const { left, right } = range.getBoundingClientRect();
        return { left, right };
      });
    const [name, value] = [await textBox(details.locator("dt")), await textBox(details.locator("dd"))];
    expect(Math.abs(name.left - value.right)).toBeLessThan(20);
    const [label, result] = [
      await textBox(details.locator("> p").nth(1)),
      await textBox(details.locator("> p").nth(2)),
    ];
    expect(Math.abs(label.right - result.right)).toBeLessThan(2);
    // The placeholder of the composer has the direction of the app, and text its own.
    const field = page.locator("form textarea");
    await field.waitFor();
    const direction = () => field.evaluate((element) => getComputedStyle(element).direction);
    await expect.poll(direction).toBe("rtl");
    await field.fill("Hello");
    await expect.poll(direction).toBe("ltr");
    await field.fill("");
    await expect.poll(direction).toBe("rtl");
    await visit.close();
  });
});

describe("the controls around the transcript", () => {
  test("9 the wheel over the composer, the header and the jump button scrolls the transcript", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`Long. ${fast(2_000)}`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await atEnd(page);
    const position = () => scroller(page).evaluate((element) => element.scrollTop);
    for (const [name, where] of [
      ["composer", composer(page)],
      ["header", page.getByRole("heading", { level: 1 })],
      ["jump button", page.getByRole("button", { name: "Jump to latest", exact: true })],
    ] as const) {
      const before = await position();
      await where.hover();
      await page.mouse.wheel(0, -200);
      await expect.poll(position, { message: name }).toBeLessThan(before - 100);
    }
    // Text that scrolls in the composer keeps the wheel.
    await composer(page).fill("line\n".repeat(60));
    const before = await position();
    const own = () => composer(page).evaluate((element) => element.scrollTop);
    await expect.poll(own).toBeGreaterThan(200);
    const start = await own();
    await composer(page).hover();
    await page.mouse.wheel(0, -100);
    await expect.poll(own).toBeLessThan(start);
    expect(await position()).toBe(before);
    await visit.close();
  });

  test("12 the transcript does not cover the focus ring of the composer", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`${"n\n".repeat(15)}${fast(400)}`);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await atEnd(page);
    // The bubble of the question, which has a background, is at the lower edge.
    await messages(page)
      .first()
      .evaluate((question) => {
        const view = question.closest("[data-scroll]")!;
        view.scrollTop += question.getBoundingClientRect().top + 100 - view.getBoundingClientRect().bottom;
      });
    await page.keyboard.press("Tab"); // the ring is for the keyboard
    await composer(page).focus();
    const frame = composer(page).locator("..");
    const { x, y, width, height } = await boxOf(frame);
    /** The colour of the pixel next to an edge of the frame, where the outer half of the ring is. */
    const colourAt = async (px: number, py: number) => {
      const clip = { x: Math.round(px), y: Math.floor(py), width: 1, height: 1 };
      const picture = (await page.screenshot({ clip })).toString("base64");
      return page.evaluate(async (base64) => {
        const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const canvas = new OffscreenCanvas(1, 1).getContext("2d")!;
        canvas.drawImage(image, 0, 0);
        return [...canvas.getImageData(0, 0, 1, 1).data].join();
      }, picture);
    };
    const below = await colourAt(x + width / 2, y + height + 0.5);
    await expect.poll(() => colourAt(x + width / 2, y - 0.5)).toBe(below);
    await visit.close();
  });
});

describe("the end of an answer", () => {
  test("20e a stopped answer says so once, with one way to try again", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn(endless);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waitForAnswerText(page);
    await stop(page).press("Enter");
    const answer = messages(page).nth(1);
    await answer.getByText("You stopped this answer.", { exact: true }).waitFor();
    await answer.getByRole("button", { name: "More actions" }).waitFor();
    const again = answer.getByRole("button", { name: /^(Try again|Regenerate)$/ });
    await expect.poll(() => again.count()).toBe(1);
    expect(await answer.getByText("Cut off here.").count()).toBe(0);
    await answer.getByRole("button", { name: "Try again", exact: true }).press("Enter");
    await stop(page).press("Enter");
    await waitForAnswerEnd(page);
    await visit.close();
  });
});

describe("the distances between messages", () => {
  test("an answer is close to its question and farther from the next one, on a desktop and on a phone", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`First. ${fast(60)}`);
    for (const text of [`Second. ${fast(30)}`, "Third: what is 12 * 7?"])
      await account.chat(text, { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(5).locator("button[aria-expanded]").first().waitFor(); // its tool, which is loaded later
    const gaps = () =>
      messages(page).evaluateAll((rows) => {
        const bubbleOf = (row: Element) => row.querySelector(".bg-sunken")!.getBoundingClientRect();
        const textOf = (row: Element) => [...row.querySelectorAll(".prose")].at(-1)!.getBoundingClientRect();
        const firstOf = (row: Element) => row.querySelector("button[aria-expanded], .prose")!.getBoundingClientRect();
        return {
          answers: [0, 2, 4].map((at) => firstOf(rows[at + 1]!).top - bubbleOf(rows[at]!).bottom),
          questions: [2, 4].map((at) => bubbleOf(rows[at]!).top - textOf(rows[at - 1]!).bottom),
        };
      });
    const edit = messages(page).nth(2).getByRole("button", { name: "Edit" });
    for (const viewport of [desktop, phone]) {
      await page.setViewportSize(viewport);
      await page.mouse.move(0, 0);
      const before = await gaps();
      for (const gap of before.answers) expect(gap).toBeGreaterThanOrEqual(14);
      for (const gap of before.answers) expect(gap).toBeLessThanOrEqual(22);
      for (const gap of before.questions) expect(gap).toBeGreaterThanOrEqual(38);
      for (const gap of before.questions) expect(gap).toBeLessThanOrEqual(50);
      // The actions of a message do not move anything, and cover no text.
      await messages(page).nth(2).hover();
      await edit.waitFor();
      expect(await gaps()).toEqual(before);
      const button = await boxOf(edit);
      const bubble = await boxOf(messages(page).nth(2).locator(".bg-sunken p"));
      expect(button.y).toBeGreaterThanOrEqual(bubble.y + bubble.height - 2);
    }
    await visit.close();
  });

  test("on a touch screen, where every message has its actions below it, an answer is close to its question too", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`First. ${fast(30)}`);
    await account.chat(`Second. ${fast(30)}`, { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account, {
      viewport: phone,
      isMobile: true,
      hasTouch: true,
    });
    const { page } = visit;
    await messages(page).nth(3).waitFor();
    const [bubble, text, actions, next] = await Promise.all([
      boxOf(messages(page).nth(0).locator(".bg-sunken")),
      boxOf(messages(page).nth(1).locator(".prose")),
      boxOf(messages(page).nth(1).getByRole("group", { name: "Actions for this message" })),
      boxOf(messages(page).nth(2).locator(".bg-sunken")),
    ]);
    expect(text.y - (bubble.y + bubble.height)).toBeLessThanOrEqual(34);
    expect(next.y - (actions.y + actions.height)).toBeGreaterThanOrEqual(14);
    await visit.close();
  });
});

describe("tool calls", () => {
  test("the line of a tool call contains its short result, and its details are plain text", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("What is 48 * 365 + 17?");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const answer = messages(page).nth(1);
    const line = answer.getByRole("button", { name: /^Calculate/ });
    await expect.poll(() => line.innerText()).toMatch(/48 \* 365 \+ 17\s*→\s*17,537/);
    await line.press("Enter");
    expect(await line.getAttribute("aria-expanded")).toBe("true");
    await answer.getByText("Arguments", { exact: true }).waitFor();
    await answer.getByText("expression", { exact: true }).waitFor();
    expect(await answer.getByRole("figure").count()).toBe(0);
    await visit.close();
  });

  test("a result is cut off only if the line has no space for it", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("What time is it?");
    await account.chat("What time is it in San Francisco?", { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    for (const [at, viewport] of [
      [1, desktop],
      [3, phone],
    ] as const) {
      await page.setViewportSize(viewport);
      const line = messages(page).nth(at).getByRole("button", { name: /→/ });
      const state = await line.evaluate((button) => {
        const [, argument, result] = [...button.querySelectorAll("bdi")] as HTMLElement[];
        const cut = (element: HTMLElement) => element.scrollWidth > element.clientWidth;
        const chevron = [...button.children].at(-1)!.getBoundingClientRect();
        return {
          cut: [cut(argument!), cut(result!)],
          chevronCovered: result!.getBoundingClientRect().right > chevron.left,
          columnLeft: button.parentElement!.getBoundingClientRect().right - chevron.right,
        };
      });
      expect(state.chevronCovered).toBe(false);
      expect(state.columnLeft).toBeGreaterThanOrEqual(0);
      if (viewport === desktop) expect(state.cut).toEqual([false, false]);
      else expect(state.cut[0]).toBe(true);
    }
    await visit.close();
  });
});

describe("code in a user message", () => {
  test("fenced code is shown as code, and the rest as it was written", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Fix *this*,\nplease:\n```js\nconst one = 1;\n```\nand # that");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    const question = messages(page).first();
    const block = question.getByRole("figure");
    await block.getByText("JavaScript", { exact: true }).waitFor();
    await block.locator("[data-ink=keyword]", { hasText: "const" }).waitFor();
    await block.getByRole("button", { name: "Copy code" }).press("Enter");
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe("const one = 1;");
    await question.getByText("Fix *this*,\nplease:", { exact: true }).waitFor();
    await question.getByText("and # that", { exact: true }).waitFor();
    await question.getByRole("button", { name: "Copy", exact: true }).press("Enter");
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toBe("Fix *this*,\nplease:\n```js\nconst one = 1;\n```\nand # that");
    await visit.close();
  });
});

describe("a long conversation", () => {
  /** Opens a conversation whose pages of messages are made from its only question and answer. more: it has an older page. */
  async function openLong(count: number, more = true): Promise<BrowserWindow> {
    const account = await sharedAccount();
    const conversation = await account.chat(`Hello! ${fast(5)}`);
    const visit = await BrowserWindow.open("/health", account);
    const { data } = await account.read<{ data: { message_id: string; parts: object[] }[] }>(
      `/conversations/${conversation}/messages`,
    );
    await visit.page.route(/\/messages\?/, async (route) => {
      const older = route.request().url().includes("cursor=");
      const made = Array.from({ length: older ? 2 : count - 2 }, (_, at) => {
        const text = `Text ${at}.`;
        const model = data[at % 2]!;
        return { ...model, message_id: `msg_${older ? "old" : "made"}_${at}`, parts: [{ ...model.parts[0], text }] };
      });
      await route.fulfill({
        json: {
          data: older ? made : [...made, ...data],
          older_cursor: older || !more ? null : "more",
          newer_cursor: null,
        },
      });
    });
    await visit.page.goto(`${url}/c/${conversation}`);
    await atEnd(visit.page);
    return visit;
  }

  test("34 all loaded messages of a long conversation are printed", async () => {
    const visit = await openLong(204);
    const { page } = visit;
    await expect.poll(() => messages(page).count()).toBeLessThan(200); // the list is virtualised
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    expect(await messages(page).count()).toBeGreaterThanOrEqual(204);
    await page.emulateMedia({ media: null });
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    await expect.poll(() => messages(page).count()).toBeLessThan(200);
    await visit.close();
  });

  test("18 the browser's own find is left alone while all messages are in the document", async () => {
    const visit = await openLong(200, false);
    const { page } = visit;
    await messages(page).nth(199).waitFor();
    expect(
      await composer(page).evaluate((element) =>
        element.dispatchEvent(
          new KeyboardEvent("keydown", { key: "f", code: "KeyF", ctrlKey: true, bubbles: true, cancelable: true }),
        ),
      ),
    ).toBe(true);
    expect(await page.getByRole("search", { name: "Find in conversation" }).count()).toBe(0);
    await visit.close();
  });
});

test("the last message of an existing conversation is shown without any script outside the budget of the first load", async () => {
  const account = await sharedAccount();
  const conversation = await account.chat("Hello!");
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  const budgeted = await scriptsOfFirstLoad();
  expect([...budgeted].map((name) => name.split("-")[0])).toEqual(expect.arrayContaining(["index", "transcript"]));
  const isOther = ({ pathname }: URL) => pathname.endsWith(".js") && !budgeted.has(pathname.split("/").at(-1)!);
  await page.route(isOther, () => undefined); // such a script never arrives
  await page.goto(`${url}/c/${conversation}`);
  await messages(page).nth(1).waitFor();
  await visit.close();
});

/** Returns the scripts whose size web/budget_test.go limits: those of the document and of the transcript. */
async function scriptsOfFirstLoad(): Promise<Set<string>> {
  const names = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name!);
  const read = async (path: string) => (await fetch(`${url}/${path}`)).text();
  const found = new Set(names(await read(""), /="\/assets\/([^"]+\.js)"/g));
  for (const name of found) {
    const script = await read(`assets/${name}`);
    const lazy = names(script, /(transcript-[\w-]+\.js)/g);
    for (const one of [...names(script, /(?:from|import)\s*"\.\/([^"]+\.js)"/g), ...lazy]) found.add(one);
  }
  return found;
}
