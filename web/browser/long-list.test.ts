// Tests of a list of many conversations: its part of the document stays small, and a change causes few requests.
import type { Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { intercept } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

const pages = 50;
const pageSize = 50;

interface Listed {
  page: Page;
  visit: BrowserWindow;
  /** The requests for conversations since the last reset: "newest" or "page" of the list, else the path. */
  requests(): string[];
  reset(): void;
  /** Sends items by the account's feed. The stream then ends, and the page follows it again. */
  feed(...items: object[]): Promise<void>;
  /** The titles that the list has now, by number; others have a standard title. */
  titles: Map<number, string>;
  /** Numbers of conversations that are at the front of the list. */
  front: number[];
}

const idOf = (number: number) => `conv_${String(number).padStart(26, "0")}`;

/** Opens a page for whose account the list has 2,500 conversations, and whose feed the test controls. */
async function open(): Promise<Listed> {
  const account = await Account.register();
  const made = await account.request("POST", "/conversations", { title: "One" });
  const one = (await made.json()) as Record<string, unknown>;
  const visit = await BrowserWindow.open("/settings", account);
  const { page } = visit;
  // Without a feed, the page asks for the newest conversations periodically, which would hide a change that it missed.
  await page.addInitScript(() => {
    const start = window.setInterval;
    window.setInterval = ((run: TimerHandler, delay?: number) =>
      delay === 20_000 ? 0 : start(run, delay)) as typeof window.setInterval;
  });
  const listed = { page, visit, titles: new Map<number, string>(), front: [] as number[] };
  let versions = 1;
  const conversation = (number: number) => ({
    ...one,
    conversation_id: idOf(number),
    title: listed.titles.get(number) ?? `Number ${number}`,
    version: listed.titles.has(number) ? ++versions : 1,
    last_activity_at: new Date(
      Date.UTC(2026, 0, 1) + (listed.front.includes(number) ? 1 : -number) * 60_000,
    ).toISOString(),
  });
  const order = () => {
    const all = Array.from({ length: pages * pageSize }, (_, number) => number);
    return [...listed.front, ...all.filter((number) => !listed.front.includes(number))];
  };
  const seen: string[] = [];
  await page.route(/\/conversations(\?|\/|$)/, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    if (route.request().resourceType() === "document") return route.continue();
    const [, , id] = pathname.split("/");
    const cursor = searchParams.get("cursor");
    seen.push(id !== undefined ? pathname : cursor === null ? "newest" : "page");
    if (id !== undefined) return route.fulfill({ json: conversation(Number(id.slice(5))) });
    const from = Number(cursor ?? 0);
    const data = order()
      .slice(from, from + pageSize)
      .map(conversation);
    const next = from + pageSize < pages * pageSize ? String(from + pageSize) : null;
    return route.fulfill({ json: { data, next_cursor: next, has_more: next !== null } });
  });
  // As the real feed, this one has a cursor: the page ends a request that gets no item in time, and sends another.
  const log: object[] = [];
  const waiting: Route[] = [];
  let delivered = 0;
  let deliver = () => {};
  const answer = async (route: Route): Promise<void> => {
    const after = Number(new URL(route.request().url()).searchParams.get("after") ?? 0);
    if (after === log.length) return void waiting.push(route);
    const body = log.map((item, at) => `id: ${at + 1}\ndata: ${JSON.stringify(item)}\n\n`).slice(after);
    await route.fulfill({ contentType: "text/event-stream", body: body.join("") });
    delivered = log.length;
    deliver();
  };
  await page.route(/\/events(\?|$)/, answer);
  const feed = async (...items: object[]) => {
    log.push(...items);
    for (const route of waiting.splice(0)) await answer(route);
    while (delivered < log.length) await new Promise<void>((resolve) => (deliver = resolve));
  };
  await page.goto(new URL("/", page.url()).href);
  await feed({ type: "feed.started", at: "2026-01-01T00:00:00Z" });
  return {
    ...listed,
    requests: () => [...seen],
    reset: () => void seen.splice(0),
    feed,
  };
}

const list = (page: Page) => page.locator("[data-list=sidebar]");
const elements = (page: Page) => page.evaluate(() => document.querySelectorAll("#sidebar *").length);

/** Scrolls to the end until every page was read. */
async function readAll({ page }: Listed): Promise<void> {
  const last = page.locator(`[data-conversation="${idOf(pages * pageSize - 1)}"]`);
  await expect
    .poll(
      () =>
        list(page)
          .evaluate(async (element) => {
            for (let frame = 0; frame < 20; frame++) {
              element.scrollTo(0, element.scrollHeight);
              await new Promise((painted) => requestAnimationFrame(painted));
            }
          })
          .then(() => last.count()),
      { interval: 0 },
    )
    .toBe(1);
}

describe("a list of 2,500 conversations", () => {
  test("26 has few elements in the document, however far it was scrolled", async () => {
    const listed = await open();
    const { page, visit } = listed;
    await list(page).locator("a").first().waitFor();
    const before = await elements(page);
    await readAll(listed);
    expect(await elements(page)).toBeLessThan(Math.max(1_000, 2 * before));
    await list(page).evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
    await list(page).getByText("Number 1250", { exact: true }).waitFor();
    expect(await elements(page)).toBeLessThan(Math.max(1_000, 2 * before));
    await visit.close();
  });

  test("26 a change is one request, and the pages that were read are not requested again", async () => {
    const listed = await open();
    const { page, visit, requests, reset, feed, titles, front } = listed;
    await list(page).locator("a").first().waitFor();
    await readAll(listed);
    reset();
    const at = "2026-01-01T00:00:00Z";
    // An old conversation has a new message: it moves to the front.
    front.unshift(2_000);
    await feed({ type: "turn.started", id: "turn_1", conversation_id: idOf(2_000), version: 1, at });
    await expect.poll(requests).toEqual(["newest"]);
    await list(page).evaluate((element) => element.scrollTo(0, 0));
    await expect.poll(() => list(page).locator("a").first().innerText()).toBe("Number 2000");
    expect(requests()).toEqual(["newest"]);
    reset();
    // An old conversation gets another title.
    titles.set(1_000, "Curlews");
    await feed({ type: "conversation.changed", id: idOf(1_000), conversation_id: idOf(1_000), version: 9, at });
    const withoutTargets = () => requests().filter((one) => !one.endsWith("/move-targets"));
    await expect.poll(withoutTargets).toEqual(["newest", `/conversations/${idOf(1_000)}`]);
    await list(page).evaluate((element) => element.scrollTo(0, element.scrollHeight * 0.4 - 300));
    await list(page).getByText("Curlews", { exact: true }).waitFor();
    expect(withoutTargets()).toEqual(["newest", `/conversations/${idOf(1_000)}`]);
    reset();
    // The page is visible again, and the sidebar is hidden and shown.
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange", { bubbles: true })));
    await expect.poll(requests).toEqual(["newest"]);
    await page.getByRole("button", { name: "Hide sidebar" }).click();
    await page.getByRole("button", { name: "Show sidebar" }).click();
    await list(page).getByText("Number 2000", { exact: true }).waitFor();
    expect(requests()).toEqual(["newest"]);
    await visit.close();
  });

  test("26 after a gap in the feed only the first pages are requested, and the others when they are read", async () => {
    const listed = await open();
    const { page, visit, requests, reset, feed, titles } = listed;
    await list(page).locator("a").first().waitFor();
    await readAll(listed);
    reset();
    for (const number of [0, 180, 190, 2_400]) titles.set(number, `Curlews ${number}`);
    await feed({ type: "feed.reset", at: "2026-01-01T00:00:00Z" });
    await expect.poll(() => requests().length).toBeGreaterThanOrEqual(4);
    await list(page).evaluate((element) => element.scrollTo(0, 0));
    await list(page).getByText("Curlews 0", { exact: true }).waitFor();
    expect(requests().length).toBeLessThan(8);
    await list(page).evaluate((element) => element.scrollTo(0, 180 * 38));
    await list(page).getByText("Curlews 180", { exact: true }).waitFor();
    await readAll(listed);
    await list(page).evaluate((element) => element.scrollTo(0, element.scrollHeight - 100 * 38));
    await list(page).getByText("Curlews 2400", { exact: true }).waitFor();
    await visit.close();
  });

  test("26 a hundred changed conversations are not requested one by one", async () => {
    const listed = await open();
    const { page, visit, requests, reset, feed } = listed;
    await list(page).locator("a").first().waitFor();
    await readAll(listed);
    reset();
    const changed = Array.from({ length: 100 }, (_, n) => idOf(1_000 + n));
    const at = "2026-01-01T00:00:00Z";
    await feed(...changed.map((id) => ({ type: "conversation.changed", id, conversation_id: id, version: 9, at })));
    await expect.poll(() => requests().length).toBeGreaterThanOrEqual(5);
    expect(requests().filter((one) => one.startsWith("/"))).toEqual([]);
    expect(requests().length).toBeLessThan(8);
    await visit.close();
  });
});

test("26 a change during the first load of the list is not missed", async () => {
  const account = await Account.register();
  await account.request("POST", "/conversations", { title: "Tides" });
  const visit = await BrowserWindow.open("/settings", account);
  const { page } = visit;
  const requests = await intercept(page, "GET", /\/conversations\?limit=50$/);
  const changed = page.waitForResponse(/\/events/);
  await page.goto(new URL("/", page.url()).href);
  await changed;
  await expect.poll(() => requests.length).toBeGreaterThan(0);
  const old = await requests[0]!.fetch();
  await account.request("POST", "/conversations", { title: "Charts" });
  // The change is announced while the first response is on its way.
  await expect.poll(() => requests.length).toBeGreaterThan(1);
  await requests[0]!.fulfill({ response: old }).catch(() => {}); // the page may have cancelled it
  for (const request of requests.slice(1)) await request.continue();
  await page.unroute(/\/conversations\?limit=50$/);
  await expect.poll(() => list(page).locator("a").allInnerTexts()).toEqual(["Charts", "Tides"]);
  await visit.close();
});
