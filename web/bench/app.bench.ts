// Measures the app and compares the figures with its budgets: typing while an answer streams into a long conversation, and in a long
// text; the first page, also on a slow phone, its bytes, its elements, and its memory after a thousand turns.
import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import type { Account } from "../browser/harness";
import { app, publish, quantile, type Figure } from "./report";
import { startService, type Service } from "./service";

const messages = 2_000;
const watchedTurns = 1_000;
const keyPresses = 300;
const rounds = 5;
/** 90,000 characters in paragraphs. */
const longText = `${"The moon moves the sea. ".repeat(25).trim()}\n`.repeat(150);
/** A slow phone: a mobile network, and a processor of a quarter of this one's speed. */
const slowNetwork = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8 };
const slowProcessor = 4;
const quick = "[[script tokens=40 ttft=0ms interval=0ms]]";

let service: Service;
let harness: typeof import("../browser/harness");

beforeAll(async () => {
  service = await startService();
  process.env["TURNSTONE_URL"] = service.url;
  harness = await import("../browser/harness");
  await harness.launch();
});
afterAll(async () => {
  await harness.quit();
  await service.stop();
});

test("the app stays within its budgets", async () => {
  const account = await harness.Account.register();
  const long = await account.chat(`The first of many. ${quick}`);
  for (let sent = 2; sent < messages; sent += 2)
    await account.chat(`Number ${sent}, with a [link](https://example.org) and \`code\`. ${quick}`, {
      conversation_id: long,
    });

  const firstPages: number[] = [];
  let bytes = { compressed: 0, sent: 0 };
  for (let round = 0; round < rounds; round++) {
    const visit = await harness.BrowserWindow.open("/robots.txt", account);
    bytes = await loaded(visit.page, async () => void firstPages.push(await firstPage(visit.page, long)));
    await visit.close();
  }

  const phone: number[] = [];
  for (let round = 0; round < rounds; round++) phone.push(await onSlowPhone(account));

  const visit = await harness.BrowserWindow.open(`/c/${long}`, account);
  const box = visit.page.getByRole("textbox", { name: /message/i });
  await box.waitFor();
  await account.startTurn("Now a stream of a hundred events a second. [[script tokens=9000 ttft=0ms interval=10ms]]", {
    conversation_id: long,
  });
  await visit.page
    .getByText("passage", { exact: false })
    .first()
    .waitFor({ timeout: 5_000 })
    .catch(() => {});
  const typed = await typing(visit.page, box);
  const elements = await visit.page.evaluate(() => document.querySelectorAll("*").length);
  await visit.close();
  const typedLong = await typingInLongText(account, long);

  const growth = await memory(account);
  const figures: Figure[] = [
    {
      what: `typing: from a key to its paint, ${keyPresses} keys, ${messages.toLocaleString("en")} messages, 100 events/s (${Math.round(typed.events)} changes of the page/s); p50`,
      measured: ms(quantile(typed.delays, 0.5)),
      budget: "–",
      holds: true,
    },
    {
      what: "the same, p95",
      measured: ms(quantile(typed.delays, 0.95)),
      budget: "50 ms",
      holds: quantile(typed.delays, 0.95) <= 50,
    },
    {
      what: `typing in a text of ${longText.length.toLocaleString("en")} characters in paragraphs of 600, without a stream; p50, p95`,
      measured: `${ms(quantile(typedLong, 0.5))}, ${ms(quantile(typedLong, 0.95))}`,
      budget: "p95 50 ms",
      holds: quantile(typedLong, 0.95) <= 50,
    },
    {
      what: "longest task during the stream",
      measured: typed.longest === 0 ? "none of 50 ms or more" : ms(typed.longest),
      budget: "200 ms",
      holds: typed.longest <= 200,
    },
    {
      what: "elements in the document during the stream",
      measured: String(elements),
      budget: "3,000",
      holds: elements <= 3_000,
    },
    {
      what: `first page: from the request until composer and last message are shown, cold cache; median of ${rounds}`,
      measured: ms(quantile(firstPages, 0.5)),
      budget: "1,000 ms",
      holds: quantile(firstPages, 0.5) <= 1_000,
    },
    {
      what: `composer usable on a slow phone (1.6 Mbit/s, a round trip of 150 ms, a processor ${slowProcessor} times slower), cold cache; median of ${rounds}`,
      measured: ms(quantile(phone, 0.5)),
      budget: "2,500 ms",
      holds: quantile(phone, 0.5) <= 2_500,
    },
    {
      what: "JavaScript until a conversation is shown, gzip",
      measured: kB(bytes.compressed),
      budget: "230 kB",
      holds: bytes.compressed <= 230_000,
    },
    { what: "the same as sent (brotli)", measured: kB(bytes.sent), budget: "–", holds: true },
    {
      what: `heap of the page before and after ${watchedTurns.toLocaleString("en")} streamed turns`,
      measured: `${kB(growth.before)}, ${kB(growth.after)}`,
      budget: "–",
      holds: true,
    },
  ];
  publish(
    app,
    figures,
    `Headless Chromium, ${cpus().length} processors that the service, Postgres, Redis and the scripted model share; \`make bench-web\`.`,
  );
});

const ms = (value: number) => `${value.toFixed(0)} ms`;
const kB = (value: number) => `${(value / 1000).toLocaleString("en", { maximumFractionDigits: 0 })} kB`;

/**
 * Returns the milliseconds from the request for the page until its composer and the last message are shown. The page
 * checks this in every frame: Playwright checks only every half second after a while.
 */
async function firstPage(page: Page, conversation: string): Promise<number> {
  await page.addInitScript(() => {
    const look = (): unknown =>
      document.querySelector("textarea") !== null &&
      [...document.querySelectorAll("[data-message]")].at(-1)?.checkVisibility()
        ? performance.mark("shown")
        : requestAnimationFrame(look);
    look();
  });
  await page.goto(`${service.url}/c/${conversation}`, { waitUntil: "commit" });
  await page.waitForFunction(() => performance.getEntriesByName("shown").length > 0);
  return page.evaluate(() => performance.getEntriesByName("shown")[0]!.startTime);
}

/** Returns the milliseconds from the request for a new conversation until its composer can be used, on a slow phone. */
async function onSlowPhone(account: Account): Promise<number> {
  const visit = await harness.BrowserWindow.open("/robots.txt", account, { viewport: { width: 390, height: 844 } });
  const session = await visit.page.context().newCDPSession(visit.page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", slowNetwork);
  await session.send("Emulation.setCPUThrottlingRate", { rate: slowProcessor });
  await visit.page.addInitScript(() => {
    const look = (): unknown => {
      const box = document.querySelector("textarea");
      return box !== null && !box.disabled && box.checkVisibility()
        ? performance.mark("usable")
        : requestAnimationFrame(look);
    };
    look();
  });
  await visit.page.goto(`${service.url}/`, { waitUntil: "commit" });
  await visit.page.waitForFunction(() => performance.getEntriesByName("usable").length > 0);
  const usable = await visit.page.evaluate(() => performance.getEntriesByName("usable")[0]!.startTime);
  await visit.close();
  return usable;
}

/** Returns the delays from each key to the frame that shows it, in milliseconds, while the composer has a long text. */
async function typingInLongText(account: Account, conversation: string): Promise<number[]> {
  const visit = await harness.BrowserWindow.open(`/c/${conversation}`, account);
  const box = visit.page.getByRole("textbox", { name: /message/i });
  await box.click();
  await visit.page.keyboard.insertText(longText);
  const typed = await typing(visit.page, box);
  await visit.close();
  return typed.delays;
}

/** Runs work and returns the bytes of the scripts that were requested until it marks "shown": compressed by gzip, and as sent. */
async function loaded(page: Page, work: () => Promise<void>): Promise<{ compressed: number; sent: number }> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const paths = new Map<string, string>();
  const sent = new Map<string, number>();
  session.on("Network.responseReceived", ({ requestId, response }) => {
    if (/\.js$/.test(response.url)) paths.set(requestId, new URL(response.url).pathname);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const path = paths.get(requestId);
    if (path !== undefined) sent.set(path, encodedDataLength);
  });
  await work();
  const needed = await page.evaluate(() => {
    const shown = performance.getEntriesByName("shown")[0]!.startTime;
    const resources = performance.getEntriesByType("resource").filter(({ startTime }) => startTime < shown);
    return resources.map(({ name }) => new URL(name).pathname).filter((path) => path.endsWith(".js"));
  });
  const sum = (sizeOf: (path: string) => number) => needed.reduce((total, path) => total + sizeOf(path), 0);
  return {
    compressed: sum((path) => readFileSync(new URL(`../dist${path}.gz`, import.meta.url)).length),
    sent: sum((path) => sent.get(path) ?? 0),
  };
}

/** Types at the speed of a person and measures the delay from each key to the frame that shows it. */
async function typing(
  page: Page,
  box: ReturnType<Page["getByRole"]>,
): Promise<{ delays: number[]; longest: number; events: number }> {
  await box.click();
  await page.evaluate(() => {
    const seen = { delays: [] as number[], longest: 0, changes: 0, startedAt: performance.now() };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
    }).observe({ entryTypes: ["longtask"] });
    addEventListener(
      "keydown",
      (key) => {
        requestAnimationFrame(() => {
          const painted = new MessageChannel();
          painted.port1.onmessage = () => seen.delays.push(performance.now() - key.timeStamp);
          painted.port2.postMessage(null);
        });
      },
      { capture: true },
    );
    new MutationObserver(() => seen.changes++).observe(document.querySelector('[role="log"]')!, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  for (let i = 0; i < keyPresses; i++) await page.keyboard.type("turnstone "[i % 10]!, { delay: 60 });
  return page.evaluate(() => {
    const { seen } = window as unknown as {
      seen: { delays: number[]; longest: number; changes: number; startedAt: number };
    };
    return {
      delays: seen.delays,
      longest: seen.longest,
      events: (1000 * seen.changes) / (performance.now() - seen.startedAt),
    };
  });
}

/** Returns the heap of a page before and after many turns streamed into the conversation that it shows. */
async function memory(account: Account): Promise<{ before: number; after: number }> {
  const conversation = await account.chat(`A new one. ${quick}`);
  const visit = await harness.BrowserWindow.open(`/c/${conversation}`, account);
  await visit.page.locator("[data-message]").last().waitFor();
  const session = await visit.context.newCDPSession(visit.page);
  const before = await heap(session);
  for (let turn = 0; turn < watchedTurns; turn++)
    await account.chat(`Turn ${turn}. ${quick}`, { conversation_id: conversation });
  await visit.page
    .getByText(`Turn ${watchedTurns - 1}.`, { exact: false })
    .first()
    .waitFor({ timeout: 60_000 });
  const after = await heap(session);
  await visit.close();
  return { before, after };
}

async function heap(session: CDPSession): Promise<number> {
  await session.send("HeapProfiler.enable");
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize;
}
