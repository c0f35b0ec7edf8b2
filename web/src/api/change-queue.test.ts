import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { storeInOrder } from "./change-queue";
import type { Conversation } from "./client";
import { withPendingChanges, type Change } from "./pending-changes";

const tides = {
  conversation_id: "conv_1",
  title: "Tides",
  title_source: "user",
  pinned_at: null,
  version: 5,
} as unknown as Conversation;

const page = new EventTarget();

beforeEach(() => {
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  vi.stubGlobal("removeEventListener", page.removeEventListener.bind(page));
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** The requests in the order in which they were sent, each with the version on which it is based. */
let sent: [name: string, version: number][] = [];
beforeEach(() => void (sent = []));

/** Makes a change whose request is answered by a call. */
function change(name: string, changed: Change, before = tides) {
  let answer!: (value: Partial<Conversation>) => void;
  let refuse!: (reason: Error) => void;
  const answered = new Promise<Partial<Conversation>>((resolve, reject) => ([answer, refuse] = [resolve, reject]));
  const stored = storeInOrder(before, changed, async (base) => {
    sent.push([name, base.version]);
    return { ...base, ...changed, version: base.version + 1, ...(await answered) };
  });
  return { stored, answer, refuse };
}

/** Whether the browser would ask before it closes the page. */
const asks = () => !page.dispatchEvent(new Event("beforeunload", { cancelable: true }));

test("a change overrides responses until it is stored", async () => {
  const pin = change("pin", { pinned_at: "now" });
  expect(withPendingChanges(tides).pinned_at).toBe("now");
  pin.answer({ pinned_at: "then" });
  expect(await pin.stored).toEqual({ ...tides, pinned_at: "then", version: 6 });
  expect(withPendingChanges(tides)).toBe(tides);
});

test("the last of several changes counts, also after an earlier one was refused", async () => {
  const first = change("first", { title: "Ebb" });
  const second = change("second", { title: "Flow" });
  expect(withPendingChanges(tides).title).toBe("Flow");
  first.refuse(new Error("refused"));
  await expect(first.stored).rejects.toThrow("refused");
  expect(withPendingChanges(tides).title).toBe("Flow");
  second.answer({});
  await second.stored;
  expect(withPendingChanges(tides)).toBe(tides);
});

test("a change is sent after those before it, also after one was refused", async () => {
  const pin = change("pin", { pinned_at: "now" });
  const unpin = change("unpin", { pinned_at: null });
  const other = change("other", { pinned_at: null }, { ...tides, conversation_id: "conv_2" });
  other.answer({});
  await other.stored;
  expect(sent.map(([name]) => name)).toEqual(["pin", "other"]);
  pin.refuse(new Error("refused"));
  await expect(pin.stored).rejects.toThrow("refused");
  unpin.answer({});
  await unpin.stored;
  expect(sent.map(([name]) => name)).toEqual(["pin", "other", "unpin"]);
});

test("the response to a change does not revert the one after it", async () => {
  const pin = change("pin", { pinned_at: "now" });
  const rename = change("rename", { title: "Ebb" });
  pin.answer({ pinned_at: "then" });
  expect(await pin.stored).toMatchObject({ pinned_at: "then", title: "Ebb" });
  rename.answer({});
  await rename.stored;
});

test("a change is based on the version of the response before it, or on a later one that is displayed", async () => {
  const pin = change("pin", { pinned_at: "now" });
  const rename = change("rename", { title: "Ebb" });
  const archive = change("archive", { archived_at: "now" }, { ...tides, version: 9 });
  for (const one of [pin, rename, archive]) {
    one.answer({});
    await one.stored;
  }
  expect(sent).toEqual([
    ["pin", 5],
    ["rename", 6],
    ["archive", 9],
  ]);
});

test("a title that was set elsewhere is not taken over from the response to another change", async () => {
  const pin = change("pin", { pinned_at: "now" });
  const rename = change("rename", { title: "Ebb" });
  pin.answer({ title: "Set elsewhere", version: 7 });
  await pin.stored;
  rename.answer({});
  await rename.stored;
  expect(sent.at(-1)).toEqual(["rename", 5]); // the service refuses it, and the user is asked
});

test("a change that is never answered ends after a while, and the next one is sent", async () => {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockReturnValueOnce(limit.signal);
  const pin = change("pin", { pinned_at: "now" });
  const unpin = change("unpin", { pinned_at: null });
  unpin.answer({});
  limit.abort();
  await expect(pin.stored).rejects.toMatchObject({ status: 0, outcomeUnknown: true });
  await unpin.stored;
  expect(sent.map(([name]) => name)).toEqual(["pin", "unpin"]);
  pin.answer({ version: 99 }); // too late: the next change is not based on it
});

test("the browser asks before it closes the page only while a change waits for another", async () => {
  const pin = change("pin", { pinned_at: "now" });
  expect(asks()).toBe(false);
  const unpin = change("unpin", { pinned_at: null });
  const rename = change("rename", { title: "Ebb" });
  expect(asks()).toBe(true);
  pin.answer({});
  await pin.stored;
  expect(asks()).toBe(true);
  unpin.answer({});
  await unpin.stored;
  expect(asks()).toBe(false);
  rename.answer({});
  await rename.stored;
  expect(asks()).toBe(false);
});
