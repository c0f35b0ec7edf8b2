// A research task from the composer to its report: it is steered while it works, survives a reload, and its citations open the
// excerpts of their sources. A second one is cancelled. Refused starts leave no empty conversation.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible, expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, expectFocus, intercept, messages, refusal, sidebar } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

const card = (page: Page) => page.getByRole("region", { name: /^Research: / });
const step = (page: Page, question: string | RegExp) =>
  card(page).getByRole("list", { name: "Plan" }).getByRole("listitem").filter({ hasText: question });
const options = (page: Page) => page.getByRole("region", { name: "Research", exact: true });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** All rules but those of contrasts, which axe cannot decide for text that another element covers. */
const withoutContrast = ["wcag2a", "wcag21a", "wcag22aa", "best-practice"];

interface Task {
  question: string;
  depth: string;
  state: string;
  budget: { pages: number };
}

test("31 a task is started with a budget, steered, left, reloaded and read with its citations; another one is cancelled", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;

  // The choices. Places without consent cannot be chosen.
  await button(page, "Research").press("Enter");
  await options(page).waitFor();
  expect(await options(page).getByRole("checkbox", { name: "Your files" }).isDisabled()).toBe(true);
  await options(page).getByRole("link", { name: "Open the privacy settings" }).waitFor();
  await options(page).getByText("At most 400,000 tokens, 40 pages and 20 min").waitFor();
  await button(page, "Change").press("Enter");
  const pages = options(page).getByRole("textbox", { name: "Pages" });
  await pages.fill("501");
  await options(page).getByText("Enter a number from 1 to 500.").waitFor();
  await composer(page).fill("How do shorebirds find food on mudflats?");
  expect(await button(page, "Start research").getAttribute("aria-disabled")).toBe("true");
  await pages.fill("30");
  await expectAccessibleOnDesktopAndPhone(page, "the choices of a research task");

  // The response to the first request is lost: the task is started once, and the text is kept until then.
  const requests = await intercept(page, "POST", /\/research-tasks$/);
  await button(page, "Start research").press("Enter");
  await expect.poll(() => requests.length).toBe(1);
  const key = requests[0]!.request().headers()["idempotency-key"];
  await requests[0]!.fetch();
  await requests[0]!.abort();
  await expect.poll(() => requests.length).toBe(2);
  expect(requests[1]!.request().headers()["idempotency-key"]).toBe(key);
  expect(await composer(page).inputValue()).toBe("How do shorebirds find food on mudflats?");
  await requests[1]!.continue();
  await page.unrouteAll();
  await card(page).waitFor();
  await expect.poll(() => composer(page).inputValue()).toBe("");
  const conversation = /conv_[a-z0-9]+/.exec(page.url())![0];
  const tasks = async () =>
    (await account.read<{ data: Task[] }>(`/conversations/${conversation}/research-tasks`)).data;
  expect(await tasks()).toMatchObject([{ depth: "standard", budget: { pages: 30 } }]);

  // The plan is changed while sources are read.
  await step(page, "Which examples")
    .getByRole("button", { name: /^Remove question/ })
    .press("Enter");
  await step(page, /^Removed: ?Which examples/).waitFor();
  await card(page).getByRole("textbox", { name: "Add a question to the plan" }).fill("What do oystercatchers eat?");
  await page.keyboard.press("Enter");
  await step(page, "What do oystercatchers eat?").waitFor();
  await sidebar(page).getByText("researching").waitFor();

  // Another device that has not opened the conversation shows the state, too.
  const elsewhere = await BrowserWindow.open("/", account);
  await sidebar(elsewhere.page).getByText("researching").waitFor();
  await elsewhere.close();

  // After a reload, everything is there again.
  await page.reload();
  await step(page, /^Removed: ?Which examples/).waitFor();
  await step(page, "What do oystercatchers eat?").waitFor();
  await card(page).getByRole("list", { name: "Sources" }).getByRole("link").first().waitFor();
  await sidebar(page).getByText("researching").waitFor();

  // The report is written at once.
  await button(page, "Write with what you have").press("Enter");
  await page.getByText(/\d+ of \d+ factual sentences have a source\./).waitFor();
  await card(page).waitFor({ state: "detached" });
  await expect.poll(() => sidebar(page).getByText("researching").count()).toBe(0);

  // A citation opens its excerpts when the keyboard focus reaches it, and takes the focus when it is pressed.
  const citation = messages(page).last().getByRole("button", { name: "Source 1", exact: true }).first();
  await citation.press("Enter");
  const excerpts = page.getByRole("dialog", { name: "Source 1" });
  await excerpts.getByRole("blockquote").first().waitFor();
  await expectFocus(excerpts);
  await expectAccessible(page, "the excerpts of a source", withoutContrast);
  await page.keyboard.press("Escape");
  await excerpts.waitFor({ state: "detached" });
  await expectFocus(citation);
  await messages(page)
    .last()
    .getByRole("button", { name: /sources? with/ })
    .press("Enter");
  await messages(page)
    .last()
    .getByText(/SHA-256/)
    .first()
    .waitFor();
  await expectAccessible(page, "a report and its sources", withoutContrast);

  // The artifact has the same citations, and is printed alone.
  await page.getByRole("link", { name: /version 1$/ }).press("Enter");
  const panel = page.getByRole("complementary", { name: "Artifacts" });
  await panel.getByRole("button", { name: "Source 1", exact: true }).first().waitFor();
  await page.evaluate(() => (window.print = () => window.dispatchEvent(new Event("beforeprint"))));
  await panel.getByRole("button", { name: "Print", exact: true }).press("Enter");
  await page.emulateMedia({ media: "print" });
  expect(await page.locator("[data-print]").isVisible()).toBe(true);
  expect(await panel.isVisible()).toBe(false);
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  await page.emulateMedia({ media: null });
  await panel.getByRole("button", { name: "Close artifacts" }).press("Enter");

  // A cancel is confirmed. The task stays in the conversation.
  await button(page, "Research").press("Enter");
  await composer(page).fill("Why are salt marshes flooded?");
  await composer(page).press("Enter");
  await card(page).getByText("Reading sources").waitFor();
  await expectAccessible(page, "a research task", withoutContrast);
  await card(page).getByRole("button", { name: "Cancel research" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel research" }).press("Enter");
  await expect.poll(async () => (await tasks()).map(({ state }) => state)).toEqual(["cancelled", "completed"]);
  const ended = page.getByRole("region", { name: "Why are salt marshes flooded?" });
  await ended.getByRole("button", { name: /tokens used/ }).press("Enter");
  await ended.getByText("Left out:").first().waitFor();
  expect(await ended.getByText("In progress:").count()).toBe(0);
  await visit.close();
});

test("31 refused starts use one conversation, which is removed with the options if nothing is in it", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  const conversations = async () =>
    (await account.read<{ data: { conversation_id: string }[] }>("/conversations")).data;
  const refusals = [
    refusal(503, "source_unavailable"),
    refusal(429, "too_many_tasks"),
    refusal(422, "validation_failed"),
  ];
  const started: string[] = [];
  await page.route(/\/research-tasks$/, (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    started.push(/conv_[a-z0-9]+/.exec(route.request().url())![0]);
    return route.fulfill(refusals[(started.length - 1) % refusals.length]!);
  });
  const start = async () => {
    const before = started.length;
    await composer(page).press("Enter");
    await expect.poll(() => started.length).toBe(before + 1);
    await options(page)
      .getByText(/^(The research didn't start|Not done)/)
      .waitFor();
  };

  // The text is kept as a draft, in one conversation.
  await button(page, "Research").press("Enter");
  await composer(page).fill("How do shorebirds find food?");
  for (const _ of refusals) await start();
  expect(new Set(started).size).toBe(1);
  await page.waitForURL(/\/c\//);
  expect(await conversations()).toHaveLength(1);
  await button(page, "Research").press("Enter");
  await options(page).waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("How do shorebirds find food?");

  // Without its text, it is removed when the options are left, and when the conversation is.
  await button(page, "Research").press("Enter");
  await start();
  await composer(page).fill("");
  await options(page).getByRole("button", { name: "Don't research" }).press("Enter");
  await page.waitForURL(/\/$/);
  await expect.poll(conversations).toEqual([]);
  await expect.poll(() => sidebar(page).locator('a[href^="/c/"]').count()).toBe(0);
  await button(page, "Research").press("Enter");
  await composer(page).fill("Why are salt marshes flooded?");
  await start();
  expect(new Set(started).size).toBe(2);
  await page.waitForURL(/\/c\//);
  await composer(page).fill("");
  await page.getByRole("link", { name: "Library" }).press("Enter");
  await expect.poll(conversations).toEqual([]);
  await visit.close();
});
