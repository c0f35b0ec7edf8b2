// Tests of hostile content in every field that another party may have written: it is rendered, no script of it runs,
// and no request is sent to another site.
import type { BrowserContextOptions, Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { Message, Part, TurnEvent } from "../src/generated/events";
import { payloads } from "./hostile";
import { intercept, messages, send, sidebar } from "./conversation-page";
import { FaultProxy } from "./fault-proxy";
import { Account, BrowserWindow, desktop, hold, phone, url, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

/** The number of payloads on one page, so small that all rows are in the document. */
const batch = 36;

/** The fields whose text is parsed as Markdown, and those that show it literally. */
const parsed = ["thought", "answer"] as const;
const literal = ["question", "source", "code", "file", "tool", "argument", "result", "failure", "notice"] as const;
type Field = (typeof parsed)[number] | (typeof literal)[number] | "title" | "model";

/** The label of a field with a payload. It precedes the payload, so that it shows where the payload is rendered. */
const mark = (field: Field, at: number) => `${field}-${at}:`;
const marked = (field: Field, at: number, length = Infinity) => `${mark(field, at)} ${payloads[at]!.slice(0, length)}`;
/** The label in a paragraph of its own, so that the payload starts a line. */
const above = (field: Field, at: number) => `${mark(field, at)}\n\n${payloads[at]!}`;

/** Normalizes whitespace as a browser does: collapsed and trimmed. */
const shown = (text: string) => text.replace(/\s+/g, " ").trim();

describe("hostile content", () => {
  test("there are at least eighty payloads", () => expect(new Set(payloads).size).toBeGreaterThanOrEqual(80));

  test("in messages, tools, code, models, languages and titles is rendered and inert, on a desktop and on a phone", async () => {
    const account = await Account.register();
    const conversation = await account.chat("What is 6*7?");
    const visit = await openRecordingDialogs(account);
    for (let first = 0; first < payloads.length; first += batch)
      await showMessages(visit, conversation, payloads.map((_, at) => at).slice(first, first + batch));
    await visit.page.unrouteAll();
    await showTitles(visit, conversation);
    await visit.close();
  });

  test("in a stream, in two halves, is rendered as it arrives and inert", async () => {
    const account = await Account.register();
    const network = await FaultProxy.start();
    const visit = await openRecordingDialogs(account, { proxy: network.proxy });
    const { page } = visit;
    // The stored messages are withheld, so that the page shows only the stream.
    await intercept(page, "GET", /\/conversations\/conv_[a-z0-9]+\/messages/);
    for (let at = 0; at < payloads.length; at += 5) {
      const holds = [`${crypto.randomUUID()}`, `${crypto.randomUUID()}`] as const;
      const releases = [await hold(holds[0]), await hold(holds[1])] as const;
      network.change(poisonedEvents(at));
      await (at === 0 ? page.goto(`${url}/`) : openInApp(page, "/"));
      await send(
        page,
        `Stream. [[script tokens=60 ttft=0ms interval=5ms reasoning=4 tool=calculate:0:ok hold=10:${holds[0]} hold=40:${holds[1]}]]`,
      );
      await page.locator(".prose", { hasText: mark("answer", at) }).waitFor();
      await expectInert(visit); // half of the payload is rendered
      await releases[0]();
      await page.getByText(`end-${at}`).last().waitFor();
      await unfold(page);
      const text = shown(await page.getByRole("log").evaluate((log) => log.textContent!));
      for (const field of ["tool", "argument", "result"] as const) expect(text).toContain(shown(mark(field, at)));
      expect(text, "the reason of the routing").toContain(shown(marked("notice", at, 60)));
      expect(text).toContain(mark("thought", at));
      expect(text, "no page shows the name of a model").not.toContain(mark("model", at));
      await expectInert(visit);
      await releases[1]();
    }
    await visit.close();
    await network.close();
  });
});

/** Shows payloads in messages, on a desktop and on a phone. */
async function showMessages(
  visit: BrowserWindow & { dialogs: string[] },
  conversation: string,
  indexes: readonly number[],
): Promise<void> {
  const { page } = visit;
  await page.unrouteAll();
  await poisonMessages(page, indexes);
  await page.setViewportSize(phone);
  await page.goto(`${url}/c/${conversation}`);
  for (const viewport of [phone, desktop]) {
    await page.setViewportSize(viewport);
    await expect.poll(() => messages(page).count()).toBe(2 * indexes.length);
    await unfold(page);
    await expectRendered(page, indexes);
    await expectInert(visit);
  }
}

/** Shows payloads as titles, in the list and above a conversation. */
async function showTitles(visit: BrowserWindow & { dialogs: string[] }, conversation: string): Promise<void> {
  const { page } = visit;
  await poisonTitles(page);
  await page.goto(`${url}/c/${conversation}`);
  const heading = page.getByRole("heading", { level: 1 });
  await expect.poll(async () => shown((await heading.textContent())!)).toBe(shown(marked("title", 0, 200)));
  const seen = new Set<string>();
  const countMissing = async () => {
    for (const text of await sidebar(page).getByRole("link").allTextContents()) seen.add(shown(text));
    return payloads
      .map((_, at) => shown(marked("title", at, 150)))
      .filter((title) => ![...seen].some((text) => text.startsWith(title))).length;
  };
  // Only rows near the visible area are in the document.
  const list = sidebar(page).getByRole("link").last();
  for (let screens = 0; screens < payloads.length && (await countMissing()) > 0; screens++) {
    await list.evaluate(async (link) => {
      let scroller = link.parentElement!;
      while (scroller.scrollHeight <= scroller.clientHeight || getComputedStyle(scroller).overflowY === "visible")
        scroller = scroller.parentElement!;
      scroller.scrollBy(0, scroller.clientHeight / 2);
      await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
    });
  }
  expect(await countMissing(), "titles that were not rendered").toBe(0);
  await expectInert(visit);
}

/** Opens a window that records the dialogs that content opens. */
async function openRecordingDialogs(
  account: Account,
  options: BrowserContextOptions = {},
): Promise<BrowserWindow & { dialogs: string[] }> {
  const visit = await BrowserWindow.open("/robots.txt", account, options);
  const dialogs: string[] = [];
  visit.page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  return Object.assign(visit, { dialogs });
}

/** Unfolds everything and scrolls through all of it, so that code is highlighted. */
async function unfold(page: Page): Promise<void> {
  await page.getByRole("log").evaluate(async (log) => {
    const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const folded = () =>
      [...log.querySelectorAll<HTMLElement>("button")].filter(
        (one) =>
          (one.ariaExpanded === "false" && one.ariaHasPopup === null) || /^Show (all|more)/.test(one.textContent!),
      );
    for (let all = folded(); all.length > 0; all = folded()) {
      for (const one of all) one.click();
      await painted();
    }
    const scroller = log.closest("[data-scroll]")!;
    for (let top = 0; top < scroller.scrollHeight; top += 4 * scroller.clientHeight) {
      scroller.scrollTo(0, top);
      await painted();
    }
  });
}

/** Expects every field with every payload in the document. */
async function expectRendered(page: Page, indexes: readonly number[]): Promise<void> {
  const rows = await messages(page).evaluateAll((all) => all.map((row) => row.textContent!));
  const prose = await page
    .getByRole("log")
    .locator(".prose")
    .evaluateAll((all) => all.map((one) => ({ text: one.textContent!, blocks: one.childElementCount })));
  const text = shown(rows.join(" "));
  const missing: string[] = [];
  for (const at of indexes) {
    for (const field of literal)
      if (!text.includes(shown(field === "argument" ? mark(field, at) : marked(field, at, 30))))
        missing.push(marked(field, at, 60));
    for (const field of parsed) {
      const found = prose.find((one) => one.text.startsWith(mark(field, at)));
      // Something of the payload is rendered in addition to its label.
      if (found === undefined || (found.blocks < 2 && found.text.trim() === mark(field, at)))
        missing.push(marked(field, at, 60));
    }
  }
  expect(missing, "payloads that were not rendered").toEqual([]);
  expect(text, "an answer names its model").toMatch(/model-\d+:/);
}

/** Expects that no content ran or was fetched, and that there is no element that could do so. */
async function expectInert(visit: BrowserWindow & { dialogs: string[] }): Promise<void> {
  const { page } = visit;
  expect(await page.evaluate(() => "__ran" in window), "a script of the content ran").toBe(false);
  expect(visit.dialogs).toEqual([]);
  expect(
    await page
      .locator(
        "main iframe, main object, main embed, main form[action], main video, main audio, main [role=log] script",
      )
      .count(),
  ).toBe(0);
  expect(await page.locator('[role=log] img[src^="http"]').count(), "images of other sites").toBe(0);
  expect(
    await page
      .locator("[role=log] a")
      .evaluateAll((links) =>
        links.map((a) => (a as HTMLAnchorElement).protocol).filter((p) => !["http:", "https:", "mailto:"].includes(p)),
      ),
  ).toEqual([]);
  expect(
    await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
    "the page is wider than the window",
  ).toBe(true);
  expect(visit.externalRequests, "requests to other sites").toEqual([]);
}

async function change<T>(page: Page, address: RegExp, how: (body: T) => unknown): Promise<void> {
  await page.route(address, async (route: Route) =>
    route.fulfill({ json: how((await (await route.fetch()).json()) as T) }),
  );
}

/** Puts some payloads into the messages that the service returns. */
async function poisonMessages(page: Page, indexes: readonly number[]): Promise<void> {
  await change<{ data: Message[] }>(page, /\/conversations\/conv_[a-z0-9]+\/messages/, (list) => {
    const [question, answer] = [list.data[0]!, list.data[1]!];
    const data = indexes.flatMap((at) => [
      {
        ...question,
        message_id: named(question.message_id, 2 * at),
        parts: [{ ...question.parts[0]!, text: marked("question", at) }],
      },
      {
        ...answer,
        message_id: named(answer.message_id, 2 * at + 1),
        model_id: marked("model", at),
        parts: poisonedParts(answer, at),
      },
    ]);
    return { ...list, data };
  });
}

async function poisonTitles(page: Page): Promise<void> {
  await change<{ data: { conversation_id: string; title: string }[] }>(page, /\/conversations\?/, (list) => {
    const one = list.data[0];
    return one === undefined
      ? list
      : {
          ...list,
          data: [
            one,
            ...payloads.map((_, at) => ({
              ...one,
              conversation_id: named(one.conversation_id, at),
              title: marked("title", at, 200),
            })),
          ],
        };
  });
  await change<object>(page, /\/conversations\/conv_[a-z0-9]+$/, (conversation) => ({
    ...conversation,
    title: marked("title", 0, 200),
  }));
}

function poisonedParts(answer: Message, at: number): Part[] {
  const id = (n: number) => `part_${String(at).padStart(4, "0")}${n}` as Part["part_id"];
  const tool = answer.parts.find((part) => part.type === "tool")!;
  const word = payloads[at]!.slice(0, 40);
  return [
    { type: "reasoning_summary", part_id: id(0), text: above("thought", at) },
    {
      type: "text",
      part_id: id(1),
      text: above("answer", at),
      citations: [{ index: 1, title: marked("source", at, 100), url: "javascript:window.__ran=1" }],
    },
    { type: "code", part_id: id(2), code: marked("code", at), language: word, filename: marked("file", at, 80) },
    {
      ...tool,
      part_id: id(3),
      title: marked("tool", at, 100),
      tool_name: word,
      input: { [word]: marked("argument", at) },
      output: marked("result", at),
    },
    { ...tool, part_id: id(4), state: "failed", output: "", error: { code: word, detail: marked("failure", at) } },
    { type: "notice", part_id: id(5), kind: "steering", text: marked("notice", at) },
  ];
}

/** Puts a payload into the events of a live turn: the text in two halves, the first half in the first delta. */
function poisonedEvents(at: number): (event: TurnEvent) => TurnEvent {
  const word = payloads[at]!.slice(0, 40);
  const halves = (text: string) => [text.slice(0, text.length / 2), text.slice(text.length / 2)];
  const rest = new Map<string, string[]>(); // by turn and type: the events of an earlier turn may still arrive
  const texts = new Map<string, string>(); // by event: a repeated event has the same text
  const next = ({ turn_id, type, sequence }: TurnEvent) => {
    const [part, event] = [`${turn_id} ${type}`, `${turn_id} ${sequence}`];
    if (!rest.has(part))
      rest.set(part, type === "answer.delta" ? halves(`${above("answer", at)}\n\nend-${at}`) : [above("thought", at)]);
    if (!texts.has(event)) texts.set(event, rest.get(part)!.shift() ?? "");
    return texts.get(event)!;
  };
  return (event) => {
    switch (event.type) {
      case "turn.routing":
        return {
          ...event,
          model_id: marked("model", at),
          reason: marked("notice", at),
          intelligence: { ...event.intelligence, requested: "auto", resolved: "coding" },
        };
      case "tool.started":
        return { ...event, title: marked("tool", at, 100), tool_name: word, input: { [word]: marked("argument", at) } };
      case "tool.completed":
        return { ...event, output: marked("result", at) };
      case "reasoning.completed":
        return { ...event, text: above("thought", at) };
      case "answer.delta":
      case "reasoning.delta":
        return { ...event, delta: next(event) };
      default:
        return event;
    }
  };
}

function named<T extends string>(id: T, n: number): T {
  return (id.slice(0, -4) + String(n).padStart(4, "0")) as T;
}
