// Hostile content in every field that somebody else may have written: nothing of it runs, and nothing is asked of anybody.
import type { Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { Message, Part } from "../src/generated/events";
import { payloads } from "./hostile";
import { Account, phone, Visit, withBrowser } from "./site";

withBrowser();

describe("hostile content", () => {
  test("there are at least eighty", () => expect(new Set(payloads).size).toBeGreaterThanOrEqual(80));

  for (const [size, options] of [["desktop", {}], ["phone", { viewport: phone }]] as const) {
    test(`in messages, titles, tools, code, models and languages, on a ${size}: nothing runs, nothing is fetched`, async () => {
      const account = await Account.register();
      const conversation = await account.chat("What is 6*7?");
      const visit = await Visit.open("/robots.txt", account, options);
      const dialogs: string[] = [];
      visit.page.on("dialog", (dialog) => {
        dialogs.push(dialog.message());
        void dialog.dismiss();
      });
      await poison(visit.page.route.bind(visit.page));
      await visit.page.goto(new URL(`/c/${conversation}`, visit.page.url()).href);
      const rows = visit.page.locator("[data-message]");
      await rows.last().waitFor();
      await expect.poll(() => rows.count()).toBeGreaterThan(0);
      for (let scrolled = 0; scrolled < 40; scrolled++) {
        await visit.page.getByRole("log").evaluate((log) => (log.closest("[data-scroll]") ?? log).scrollBy(0, -2_000));
        await visit.page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))));
      }
      expect(await visit.page.evaluate(() => "__ran" in window), "a script of the content ran").toBe(false);
      expect(dialogs).toEqual([]);
      expect(await visit.page.locator("main iframe, main object, main embed, main form[action], main video, main audio, main [role=log] script").count()).toBe(0);
      expect(await visit.page.locator('[role=log] img[src^="http"]').count(), "pictures of others").toBe(0);
      expect(await visit.page.locator("[role=log] a").evaluateAll((links) => links.map((a) => (a as HTMLAnchorElement).protocol).filter((p) => !["http:", "https:", "mailto:"].includes(p)))).toEqual([]);
      expect(await visit.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the window").toBe(true);
      await visit.close();
    });
  }
});

/** Puts the payloads into what the service answers. */
async function poison(route: (url: RegExp, handler: (route: Route) => Promise<void>) => Promise<unknown>): Promise<void> {
  await route(/\/conversations\/conv_[a-z0-9]+\/messages/, async (route) => {
    const page = (await (await route.fetch()).json()) as { data: Message[] };
    const [question, answer] = [page.data[0]!, page.data[1]!];
    page.data = payloads.flatMap((text, i) => [
      { ...question, message_id: named(question.message_id, 2 * i), parts: [{ ...question.parts[0]!, text }] },
      { ...answer, message_id: named(answer.message_id, 2 * i + 1), model_id: text.slice(0, 200), parts: poisoned(answer, text, i) },
    ]);
    await route.fulfill({ json: page });
  });
  await route(/\/conversations\?/, async (route) => {
    const list = (await (await route.fetch()).json()) as { data: { conversation_id: string; title: string }[] };
    const one = list.data[0];
    if (one !== undefined) list.data = [one, ...payloads.map((text, i) => ({ ...one, conversation_id: named(one.conversation_id, i), title: text.slice(0, 200) }))];
    await route.fulfill({ json: list });
  });
  await route(/\/conversations\/conv_[a-z0-9]+$/, async (route) => {
    const answer = await route.fetch();
    const conversation = (await answer.json()) as { title: string };
    await route.fulfill({ json: { ...conversation, title: payloads[0] } });
  });
}

function poisoned(answer: Message, text: string, i: number): Part[] {
  const id = (n: number) => `part_${String(i).padStart(4, "0")}${n}` as Part["part_id"];
  const tool = answer.parts.find((part) => part.type === "tool")!;
  return [
    { type: "reasoning_summary", part_id: id(0), text },
    { type: "text", part_id: id(1), text, citations: [{ index: 1, title: text.slice(0, 100), url: "javascript:window.__ran=1" }] },
    { type: "code", part_id: id(2), code: text, language: text.slice(0, 40), filename: text.slice(0, 80) },
    { ...tool, part_id: id(3), title: text.slice(0, 100), tool_name: text.slice(0, 40), input: { [text.slice(0, 40)]: text }, output: text },
    { ...tool, part_id: id(4), state: "failed", output: "", error: { code: text.slice(0, 40), detail: text } },
    { type: "notice", part_id: id(5), kind: "steering", text },
  ];
}

function named<T extends string>(id: T, n: number): T {
  return (id.slice(0, -4) + String(n).padStart(4, "0")) as T;
}
