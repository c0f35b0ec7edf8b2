// Tests of the app without the service, and of what is shown while the app is not: the service worker and notifications.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { composer, messages, pausedAnswer, send, sidebar, waitForAnswerEnd } from "./conversation-page";
import { Account, BrowserWindow, url, withBrowser } from "./harness";
import { recordNotifications } from "./notifications";

withBrowser();

/** The paths of what the service worker has stored. */
const stored = (page: Page) =>
  page.evaluate(async () => {
    const cache = await caches.open("turnstone");
    return (await cache.keys()).map(({ url }) => new URL(url).pathname).sort();
  });

test("the app starts without the service from what the browser has stored, which is nothing of an account", async () => {
  const account = await Account.register();
  const conversation = await account.chat("A secret tide.");
  const visit = await BrowserWindow.open(`/c/${conversation}`, account, { serviceWorkers: "allow" });
  const { page, context } = visit;
  await messages(page).nth(1).waitFor();
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await expect.poll(() => stored(page)).toContain("/");
  const manifest = await page.evaluate(async () =>
    (await fetch(document.querySelector<HTMLLinkElement>('link[rel="manifest"]')!.href)).json(),
  );
  expect(manifest).toMatchObject({ start_url: "/", display: "standalone" });
  await context.setOffline(true);
  await page.goto(new URL("/library", page.url()).href);
  await page.getByRole("heading", { name: "You're offline" }).waitFor();
  expect(await page.evaluate(() => [...document.images].every(({ naturalWidth }) => naturalWidth > 0))).toBe(true);
  for (const path of await stored(page)) expect(path).toMatch(/^\/(?:assets\/[^/]+)?$/);
  await context.setOffline(false);
  await sidebar(page).waitFor();
  expect(new URL(page.url()).pathname).toBe("/library");

  // What the worker sends when one of its notifications is clicked.
  await page.evaluate(() => {
    navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open: "/settings" } }));
  });
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();

  // The document of another version: its assets are discarded once that of this version is shown.
  await page.evaluate(async () => {
    const cache = await caches.open("turnstone");
    await cache.put("/", new Response('<script src="/assets/old.js"></script>'));
    await cache.put("/assets/old.js", new Response("old"));
  });
  await page.reload();
  await expect.poll(() => stored(page)).not.toContain("/assets/old.js");
  await composer(page).or(sidebar(page)).first().waitFor();
  await visit.close();
});

test("pages of other servers are not stored, and a storage that cannot be read does not stop the app", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/library", account, { serviceWorkers: "allow" });
  const { page, context } = visit;
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await expect.poll(() => stored(page)).toContain("/");
  const worker = context.serviceWorkers()[0]!;
  await worker.evaluate(async () => {
    const scope = self as unknown as { registration: ServiceWorkerRegistration };
    await scope.registration.navigationPreload.disable();
    const original = self.fetch;
    self.fetch = (request) => {
      if (new URL((request as Request).url).pathname !== "/library") return original(request);
      const headers = { "Content-Type": "text/html" };
      return Promise.resolve(new Response("<h1>Sign in to the network</h1>", { headers }));
    };
  });
  await page.reload();
  await page.getByRole("heading", { name: "Sign in to the network" }).waitFor();
  expect(await page.evaluate(async () => (await caches.match("/"))!.text())).toContain('"/assets/');

  await worker.evaluate(() => {
    const broken = () => Promise.reject(new Error("The storage is broken."));
    Object.assign(CacheStorage.prototype, { match: broken, open: broken });
  });
  await page.goto(new URL("/", page.url()).href);
  await composer(page).waitFor();
  await visit.close();
});

test("an answer gets one notification in several tabs, and none while a tab shows its conversation", async () => {
  const account = await Account.register();
  const shown = await account.chat("Hello!");
  const visit = await BrowserWindow.open("/health", account);
  const open = async (page: Page) => {
    const notifications = await recordNotifications(page);
    await page.addInitScript(() => {
      Object.assign(Notification, { permission: "granted" });
      localStorage.setItem("turnstone-device", '{"notify":true}');
    });
    await page.goto(`${url}/`);
    await composer(page).waitFor();
    return notifications;
  };
  const pages = [visit.page, await visit.context.newPage()];
  const notifications = await Promise.all(pages.map(open));
  const watching = await visit.tab(`/c/${shown}`);
  const [seen, unseen] = [await pausedAnswer(), await pausedAnswer()];
  await account.startTurn(unseen.text);
  await send(watching, seen.text);
  const answering = (page: Page) => sidebar(page).getByText("answering");
  for (const page of pages) await answering(page).nth(1).waitFor({ state: "attached" });
  await seen.release();
  await waitForAnswerEnd(watching);
  for (const page of pages) await expect.poll(() => answering(page).count()).toBe(1);
  await unseen.release();
  for (const page of pages) await expect.poll(() => answering(page).count()).toBe(0);
  const all = async () => (await Promise.all(notifications.map((one) => one.shown()))).flat();
  await expect.poll(all).toHaveLength(1);
  expect((await all())[0]).toMatch(/^The answer is ready: (?!.*Hello)/);
  await visit.close();
});

test("during a long answer the app offers notifications, and an answer that ends out of sight gets one", async () => {
  const account = await Account.register();
  const shown = await account.chat("Hello!");
  const visit = await BrowserWindow.open("/health", account);
  const { page } = visit;
  const notifications = await recordNotifications(page);
  await page.clock.install();
  await page.goto(new URL(`/c/${shown}`, page.url()).href);
  const answer = await pausedAnswer();
  await send(page, answer.text);
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
  const offer = page.getByRole("button", { name: "Notify me when answers are ready" });
  await page.clock.fastForward(15_000);
  expect(await offer.count()).toBe(0);
  await page.clock.fastForward(10_000);
  await offer.press("Enter");
  await offer.waitFor({ state: "detached" });

  const hidden = await pausedAnswer();
  const other = await account.startTurn(hidden.text);
  await sidebar(page).getByText("answering").nth(1).waitFor({ state: "attached" });
  await hidden.release();
  await expect.poll(async () => (await notifications.shown()).length).toBe(1);
  expect((await notifications.shown())[0]).toMatch(/^The answer is ready: /);
  await notifications.click(0);
  await page.waitForURL(`**/c/${other.conversation}`);
  await answer.release();
  await visit.close();
});
