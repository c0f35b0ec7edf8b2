// Measures how long it takes until another browser of the same account shows a change, without a reload.
import { cpus } from "node:os";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import type { Account } from "../browser/harness";
import { devices, publish, quantile } from "./report";
import { startService, type Service } from "./service";

const rounds = 20;
/** A question whose answer outlasts the measurement. */
const endless = "Something long. [[script tokens=20000 ttft=10ms interval=30ms]]";
/** Milliseconds from the response to a change until another browser shows it. */
const budget = 1_000;

/** A change of the account, and the condition in the page under which another browser shows it. */
interface Change {
  what: string;
  prepare?(): Promise<void>;
  make(round: number): Promise<unknown>;
  /** Runs in the page, in every frame. */
  shown(round: number): boolean;
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

test("another browser shows a change within a second", async () => {
  const account = await harness.Account.register();
  const conversation = await account.chat("What is 6*7?");
  const changes = [
    await branchChange(account, conversation),
    ...(await otherChanges(account, conversation)),
    queueChange(account, conversation), // last, because it needs a live answer
  ];
  const visit = await harness.BrowserWindow.open(`/c/${conversation}`, account);
  const { page } = visit;
  await page.locator("[data-message]").nth(1).waitFor();
  const figures = [];
  for (const change of changes) {
    await change.prepare?.();
    const delays = [];
    for (let round = 0; round < rounds; round++) delays.push(await delayOf(page, change, round));
    const longest = Math.max(...delays);
    figures.push({
      what: `${change.what}; p50, longest of ${rounds}`,
      measured: `${quantile(delays, 0.5).toFixed(0)} ms, ${longest.toFixed(0)} ms`,
      budget: `${budget.toLocaleString("en")} ms`,
      holds: longest <= budget,
    });
  }
  await visit.close();
  publish(
    devices,
    figures,
    "From the response to a change until another browser of the account shows it. " +
      `Headless Chromium, ${cpus().length} processors that the service and Postgres share; \`make bench-web\`.`,
  );
});

/** Returns the milliseconds from the end of a change until the page shows it; the page checks this in every frame. */
async function delayOf(page: Page, change: Change, round: number): Promise<number> {
  const shown = page.waitForFunction(change.shown, round, { polling: "raf" });
  await change.make(round);
  const from = performance.now();
  await shown;
  return performance.now() - from;
}

/** Adds another version of the question, and returns the switch between both. */
async function branchChange(account: Account, conversation: string): Promise<Change> {
  const read = () => account.read<{ active_branch_id: string; version: number }>(`/conversations/${conversation}`);
  const { data } = await account.read<{ data: { message_id: string }[] }>(`/conversations/${conversation}/messages`);
  const first = await read();
  const branch = { message_id: data[0]!.message_id, mode: "edit" };
  await account.chat("What is 7*8?", { conversation_id: conversation, branch });
  const branches = [first.active_branch_id, (await read()).active_branch_id];
  return {
    what: "the other branch",
    make: async (round) =>
      account.request("PUT", `/conversations/${conversation}/active-branch`, {
        branch_id: branches[round % 2],
        version: (await read()).version,
      }),
    shown: (round) => {
      const question = round % 2 === 0 ? "What is 6*7?" : "What is 7*8?";
      return document.querySelector("[data-message]")?.textContent?.includes(question) === true;
    },
  };
}

/** Returns the change of the order of two queued messages, which wait behind an answer. */
function queueChange(account: Account, conversation: string): Change {
  const path = `/conversations/${conversation}/follow-ups`;
  const texts = ["even", "odd"];
  const ids: string[] = [];
  return {
    what: "the order of the queue",
    prepare: async () => {
      await account.startTurn(endless, { conversation_id: conversation });
      for (const content of texts) await account.request("POST", path, { content });
      const { data } = await account.read<{ data: { follow_up_id: string }[] }>(path);
      ids.push(...data.map((one) => one.follow_up_id));
    },
    make: async (round) => {
      const { queue_version } = await account.read<{ queue_version: number }>(path);
      const order = round % 2 === 0 ? [...ids].reverse() : ids;
      await account.request("PUT", `${path}/order`, { order, queue_version });
    },
    shown: (round) => {
      const first = document.querySelector('[aria-label="Up next"] li')?.textContent ?? "";
      return first.includes(round % 2 === 0 ? "odd" : "even");
    },
  };
}

async function otherChanges(account: Account, conversation: string): Promise<Change[]> {
  const deleted: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const other = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${other}/title`, { title: `To be deleted ${round}.` });
    deleted.push(other);
  }
  return [
    {
      what: "a draft",
      make: (round) => account.request("PUT", `/conversations/${conversation}/draft`, { content: `Draft ${round}` }),
      shown: (round) => document.querySelector("textarea")?.value === `Draft ${round}`,
    },
    {
      what: "a title",
      make: (round) => account.request("PUT", `/conversations/${conversation}/title`, { title: `Title ${round}.` }),
      shown: (round) => document.querySelector("#sidebar")?.textContent?.includes(`Title ${round}.`) === true,
    },
    {
      what: "a deletion",
      make: (round) => account.request("DELETE", `/conversations/${deleted[round]}`),
      shown: (round) => document.querySelector("#sidebar")?.textContent?.includes(`To be deleted ${round}.`) === false,
    },
  ];
}
