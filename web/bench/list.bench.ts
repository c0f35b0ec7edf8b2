// Measures the list of an account with 100,000 conversations: frames while it is scrolled, with pages that load meanwhile
// and after all of them are loaded, and what changes cost then. The baseline is a plain list of the same rows, which is scrolled in
// turn with it.
import { cpus } from "node:os";
import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import type { Account } from "../browser/harness";
import { list, publish, quantile, type Figure } from "./report";
import { startService, type Service } from "./service";

const conversations = 100_000;
/** The rounds of a scroll, the frames of a round, and the pixels of a frame: 3,600 pixels a second, 95 rows. */
const rounds = 5;
const frames = 240;
const step = 60;
/** Rows of the baseline, more than all rounds pass. */
const plainRows = 2_000;
/** Changes of conversations by another device in each round. */
const changes = 4;

/** A frame later than this was dropped: one and a half intervals of 60 frames a second. */
const late = 25;
/** Milliseconds between frames, share of dropped frames, milliseconds of the processor for a frame (half of its time), elements of the sidebar, requests for each change. */
const budgets = { p95: 17.5, dropped: 0.01, processor: 8.3, elements: 1_000, requests: 2 };

// Triggers would index titles for the search, one by one.
const insertSQL = (account: string) => `
set session_replication_role = replica;
with a as (select account_id from accounts where email_key = '${account}'),
ids as materialized (
  select account_id, ('0190a000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id, n,
         now() - n * interval '10 minutes' as at
  from a, generate_series(1, ${conversations}) n
), branches as (
  insert into branches (account_id, branch_id, conversation_id) select account_id, id, id from ids
), segments as (
  insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
  select account_id, id, id, 1, 2147483647 from ids
)
insert into conversations (account_id, conversation_id, active_branch_id, title, created_at, updated_at, last_activity_at)
select account_id, id, id, 'Conversation ' || n || ' about the migration of shore birds', at, at, at from ids;
vacuum analyze conversations, branches, branch_segments;`;

/** Frames of a scroll: the intervals between them, the tasks of 50 ms or more, and the processor time, in milliseconds. */
interface Scroll {
  intervals: number[];
  tasks: number[];
  processor: number;
}

interface Comparison {
  own: Scroll;
  plain: Scroll;
}

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

test("a list of 100,000 conversations scrolls without dropped frames", async () => {
  const account = await harness.Account.register();
  service.sql(insertSQL(account.email));
  const visit = await harness.BrowserWindow.open("/", account);
  const { page } = visit;
  await page.locator("#sidebar a[data-conversation]").first().waitFor();
  const session = await visit.context.newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const requests = countRequests(page);

  const loading = await compare(page, session);
  const started = Date.now();
  await loadAll(page);
  const loadTime = Date.now() - started;
  const pages = requests();
  await page.evaluate(() => document.querySelector("[data-list=sidebar]")!.scrollTo(0, 1_000_000));
  const loaded = await compare(page, session);
  const before = requests();
  const changed = await compare(page, session, (round) => change(account, round));
  const reads = requests();
  const elements = await page.evaluate(() => document.querySelectorAll("#sidebar *").length);
  await visit.close();

  publish(
    list,
    [
      ...figuresOf("pages of 50 load meanwhile", loading),
      ...figuresOf(`all ${conversations.toLocaleString("en")} loaded`, loaded),
      ...figuresOf(`all loaded, ${rounds * changes} titles change on another device meanwhile`, changed),
      {
        what: `requests of the page for these ${rounds * changes} changes (without changes: ${before})`,
        measured: String(reads),
        budget: String(budgets.requests * rounds * changes),
        holds: reads <= budgets.requests * rounds * changes,
      },
      {
        what: `loading ${pages.toLocaleString("en")} pages by scrolling to the end again and again`,
        measured: `${(loadTime / 1000).toFixed(0)} s`,
        budget: "–",
        holds: true,
      },
      {
        what: "elements of the sidebar after that",
        measured: String(elements),
        budget: budgets.elements.toLocaleString("en"),
        holds: elements <= budgets.elements,
      },
    ],
    `An account with ${conversations.toLocaleString("en")} conversations; headless Chromium, ${cpus().length} processors that the service and Postgres share; \`make bench-web\`. ` +
      `The list is scrolled by ${step} pixels in each frame, in ${rounds} rounds of ${frames} frames. In turn with it, a plain list of the same rows is scrolled, whose figures are in brackets. ` +
      "Frame times, dropped frames and tasks hold if they are within their budgets or not worse than those of the plain list, because other work on the processors delays both.",
  );
});

function figuresOf(what: string, { own, plain }: Comparison): Figure[] {
  const quantiles = ({ intervals }: Scroll) =>
    [0.5, 0.95, 0.99].map((q) => quantile(intervals, q).toFixed(1)).join(", ");
  const p95 = ({ intervals }: Scroll) => quantile(intervals, 0.95);
  const dropped = ({ intervals }: Scroll) => intervals.filter((interval) => interval > late).length;
  const share = (scroll: Scroll) => `${((100 * dropped(scroll)) / scroll.intervals.length).toFixed(1)} %`;
  const tasks = (scroll: Scroll) =>
    scroll.tasks.length === 0 ? "none" : `${scroll.tasks.length}, longest ${Math.max(...scroll.tasks).toFixed(0)} ms`;
  const processorOf = ({ processor, intervals }: Scroll) => processor / intervals.length;
  const each = (scroll: Scroll) => processorOf(scroll).toFixed(1);
  return [
    {
      what: `scrolling, ${what}: time between frames, p50, p95, p99`,
      measured: `${quantiles(own)} ms (${quantiles(plain)})`,
      budget: `p95 ${budgets.p95} ms`,
      holds: p95(own) <= Math.max(budgets.p95, p95(plain)),
    },
    {
      what: "the same, dropped frames",
      measured: `${share(own)} (${share(plain)})`,
      budget: `${100 * budgets.dropped} %`,
      holds: dropped(own) <= Math.max(budgets.dropped * own.intervals.length, dropped(plain)),
    },
    {
      what: "the same, tasks of 50 ms or more",
      measured: `${tasks(own)} (${tasks(plain)})`,
      budget: "none",
      holds: own.tasks.length <= plain.tasks.length,
    },
    {
      what: "the same, processor time of the page's main thread for each frame",
      measured: `${each(own)} ms (${each(plain)})`,
      budget: `${budgets.processor} ms`,
      holds: processorOf(own) <= budgets.processor,
    },
  ];
}

/** Scrolls the list and the baseline in turn. */
async function compare(
  page: Page,
  session: CDPSession,
  meanwhile: (round: number) => Promise<void> = async () => {},
): Promise<Comparison> {
  await addPlainList(page);
  const compared = { own: emptyScroll(), plain: emptyScroll() };
  for (let round = 0; round < rounds; round++) {
    await measure(page, session, "plain", compared.plain);
    await Promise.all([measure(page, session, "sidebar", compared.own), meanwhile(round)]);
  }
  await page.evaluate(() => document.querySelector("[data-list=plain]")!.remove());
  return compared;
}

const emptyScroll = (): Scroll => ({ intervals: [], tasks: [], processor: 0 });

/** Adds a list of rows that are all in the document, without any code. */
async function addPlainList(page: Page): Promise<void> {
  await page.evaluate((total) => {
    const list = document.querySelector("[data-list=sidebar]")!;
    const plain = list.cloneNode(false) as HTMLElement;
    plain.dataset["list"] = "plain";
    plain.style.cssText = "position: fixed; inset: 0 auto 0 0; width: 17.5rem; z-index: 9; background: Canvas";
    const row = list.querySelector("li:has(a[data-conversation])")!.cloneNode(true) as HTMLElement;
    row.className = "pb-0.5";
    row.removeAttribute("style");
    const all = document.createElement("ul");
    all.append(...Array.from({ length: total }, () => row.cloneNode(true)));
    plain.append(all);
    document.body.append(plain);
  }, plainRows);
}

/** Scrolls a list for one round and adds what it measures to the sum. */
async function measure(page: Page, session: CDPSession, name: string, sum: Scroll): Promise<void> {
  await page.evaluate((shown) => {
    document.querySelector<HTMLElement>("[data-list=plain]")!.hidden = !shown;
  }, name === "plain");
  const before = await processorTime(session);
  const { intervals, tasks } = await page.evaluate(scrollDown, { selector: `[data-list=${name}]`, frames, step });
  sum.processor += (await processorTime(session)) - before;
  sum.intervals.push(...intervals);
  sum.tasks.push(...tasks);
}

/** Returns the processor time of the main thread in milliseconds. */
async function processorTime(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * metrics.find(({ name }) => name === "TaskDuration")!.value;
}

/** Runs in the page. */
async function scrollDown(of: { selector: string; frames: number; step: number }): Promise<Omit<Scroll, "processor">> {
  const list = document.querySelector(of.selector)!;
  const measured = { intervals: [] as number[], tasks: [] as number[] };
  const observer = new PerformanceObserver((seen) =>
    measured.tasks.push(...seen.getEntries().map(({ duration }) => duration)),
  );
  observer.observe({ entryTypes: ["longtask"] });
  await new Promise<void>((resolve) => {
    let before = 0;
    const frame = (now: number) => {
      if (before > 0) measured.intervals.push(now - before);
      before = now;
      list.scrollTop += of.step;
      if (measured.intervals.length < of.frames) requestAnimationFrame(frame);
      else resolve();
    };
    requestAnimationFrame(frame);
  });
  observer.disconnect();
  return measured;
}

/** Scrolls to the end of the list, in every frame, until all conversations are loaded. */
async function loadAll(page: Page): Promise<void> {
  await page.evaluate(
    (total) =>
      new Promise<void>((resolve) => {
        const list = document.querySelector("[data-list=sidebar]")!;
        const frame = () => {
          list.scrollTop = list.scrollHeight;
          if (list.scrollHeight / 38 >= total) resolve();
          else requestAnimationFrame(frame);
        };
        frame();
      }),
    conversations,
  );
}

/** Changes titles of the newest conversations, spread over a round. */
async function change(account: Account, round: number): Promise<void> {
  const { data } = await account.read<{ data: { conversation_id: string }[] }>("/conversations?limit=50");
  for (let n = 0; n < changes; n++) {
    const { conversation_id: id } = data[round * changes + n]!;
    await account.request("PUT", `/conversations/${id}/title`, { title: `Changed ${n}` });
    await new Promise((resolve) => setTimeout(resolve, (frames * 16) / changes));
  }
}

/** Returns a function that returns the number of requests for conversations since its last call. */
function countRequests(page: Page): () => number {
  let sent = 0;
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.startsWith("/conversations")) sent++;
  });
  return () => {
    const now = sent;
    sent = 0;
    return now;
  };
}
