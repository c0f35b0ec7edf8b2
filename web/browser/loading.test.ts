// Tests of the requests of one page load: nothing is loaded twice or too early, and no change is missed while the page loads.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { composer, intercept, messages, sidebar } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

/** Counts the requests of a page for what every page shows, by path. */
function requestsOf(page: Page): Map<string, number> {
  const counts = new Map<string, number>();
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.startsWith("/assets/") && request.resourceType() !== "document")
      counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
  });
  return counts;
}

const titles = (page: Page) => sidebar(page).locator("a[data-conversation]").allInnerTexts();
const resources = ["/auth/session", "/events", "/account/settings", "/projects", "/conversations"];

test("a page load requests each resource once and misses no change, and the page always has one main heading", async () => {
  const account = await Account.register();
  await account.request("POST", "/conversations", { title: "Tides" });
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  await expectFrameWithoutScripts(page);
  await expectEachResourceOnce(page, account);
  await expectLoadedAgainAfterFeed(page, account);
  await expectOneHeadingWhileLoading(page);
  await visit.close();
});

test("the composer is shown before the feed has started, for which the requests that read wait", async () => {
  const account = await Account.register();
  await account.request("POST", "/conversations", { title: "Tides" });
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  // The wait for the feed, half a second, has no limit.
  await page.addInitScript(() => {
    const original = window.setTimeout;
    window.setTimeout = ((run: TimerHandler, wait?: number, ...rest: unknown[]) =>
      wait === 500 ? 0 : original(run, wait, ...rest)) as typeof window.setTimeout;
  });
  const counts = requestsOf(page);
  const feeds = await intercept(page, "GET", /\/events$/);
  await page.goto(new URL("/", page.url()).href);
  await composer(page).waitFor();
  expect(await composer(page).isEditable()).toBe(true);
  expect([...counts.keys()].sort()).toEqual(["/auth/session", "/events"]);
  await feeds[0]!.continue();
  await expect.poll(() => titles(page)).toEqual(["Tides"]);
  await account.request("POST", "/projects", { name: "Shores" });
  await sidebar(page).getByRole("link", { name: "Shores" }).waitFor();
  expect(["/auth/session", "/events", "/projects"].map((path) => counts.get(path))).toEqual([1, 1, 2]);
  await visit.close();
});

test("a conversation is shown before what it can do without is loaded", async () => {
  const account = await Account.register();
  const conversation = await account.chat("Hello!");
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  await page.addInitScript(() => {
    const look = (): unknown =>
      [...document.querySelectorAll("[data-message]")].at(1)?.checkVisibility()
        ? performance.mark("shown")
        : requestAnimationFrame(look);
    look();
  });
  /** The names of the scripts that were requested before or after the conversation was shown. */
  const scripts = (when: "before" | "after") =>
    page.evaluate((when) => {
      const shown = performance.getEntriesByName("shown")[0]?.startTime ?? Infinity;
      return performance.getEntriesByType("resource").flatMap(({ name, startTime }) => {
        const script = /\/assets\/([a-z-]+)-[\w-]{8}\.js$/.exec(name)?.[1];
        return script !== undefined && startTime < shown === (when === "before") ? [script] : [];
      });
    }, when);
  await page.goto(new URL(`/c/${conversation}`, page.url()).href);
  await messages(page).nth(1).waitFor();
  await expect.poll(() => scripts("after")).toEqual(expect.arrayContaining(["attached", "pending-list"]));
  const before = await scripts("before");
  expect(before).toEqual(expect.arrayContaining(["index", "transcript"]));
  const later = ["attached", "pending-list", "artifacts-button", "outbox-message-notice", "task-list"];
  expect(before.filter((script) => later.includes(script))).toEqual([]);
  expect(await scripts("after")).not.toContain("task-list"); // the conversation has no task
  await visit.close();
});

/**
 * Before its scripts have loaded, the page shows the frame of the app: the sidebar and the place of the composer, and has requested
 * the session.
 */
async function expectFrameWithoutScripts(page: Page): Promise<void> {
  await page.route(/\.js$/, (route) => route.abort());
  const session = page.waitForRequest(/\/auth\/session$/);
  await page.goto(new URL("/", page.url()).href);
  await session;
  const frame = page.locator("#shell");
  await frame.waitFor();
  const [bar, rest] = await Promise.all([0, 1].map((n) => frame.locator("> *").nth(n).boundingBox()));
  expect(bar).toMatchObject({ x: 0, y: 0, width: 280 });
  expect(rest).toMatchObject({ x: 280, y: 0 });
  await page.unrouteAll();
  await page.reload();
  await sidebar(page).waitFor();
  expect((await page.locator("#sidebar").boundingBox())!.width).toBe(280);
  expect(await frame.isVisible()).toBe(false);
  await page.goto(new URL("/health", page.url()).href);
}

async function expectEachResourceOnce(page: Page, account: Account): Promise<void> {
  const counts = requestsOf(page);
  // The feed has started when the session is known.
  const sessions = await intercept(page, "GET", /\/auth\/session$/);
  const feed = page.waitForResponse(/\/events/);
  await page.goto(new URL("/", page.url()).href);
  await feed;
  await expect.poll(() => sessions.length).toBe(1);
  await sessions[0]!.continue();
  await composer(page).waitFor();
  await expect.poll(() => titles(page)).toEqual(["Tides"]);
  // Changes are collected for 50 ms before they are applied; this one is applied after everything before it.
  await account.request("POST", "/projects", { name: "Shores" });
  await sidebar(page).getByRole("link", { name: "Shores" }).waitFor();
  expect(Object.fromEntries(resources.map((path) => [path, counts.get(path)]))).toEqual({
    "/auth/session": 1,
    "/events": 1,
    "/account/settings": 1,
    "/projects": 2,
    "/conversations": 2, // an item about a project makes it outdated
  });
  await page.unrouteAll();
}

/** What was loaded before the feed has started is loaded again, so that no change is missed. */
async function expectLoadedAgainAfterFeed(page: Page, account: Account): Promise<void> {
  const feeds = await intercept(page, "GET", /\/events$/);
  await page.reload();
  await expect.poll(() => titles(page)).toEqual(["Tides"]);
  await account.request("POST", "/conversations", { title: "Charts" });
  expect(await titles(page)).toEqual(["Tides"]);
  await feeds[0]!.continue();
  await expect.poll(() => titles(page)).toEqual(["Charts", "Tides"]);
}

/** The page of a new conversation has one main heading while it loads, which stays after that. */
async function expectOneHeadingWhileLoading(page: Page): Promise<void> {
  await composer(page).waitFor();
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/conversations/, async (route) => {
    if (route.request().method() === "GET") await released;
    await route.continue();
  });
  const headings = () => page.getByRole("heading", { level: 1 }).allInnerTexts();
  await composer(page).fill("Tides"); // stores the new conversation
  await page.waitForURL("**/c/*");
  expect(await headings()).toEqual(["What's on your mind?"]);
  const loaded = page.waitForResponse(/\/conversations\/conv_\w+$/);
  release();
  await loaded;
  await expect.poll(headings).toEqual(["What's on your mind?"]);
}
