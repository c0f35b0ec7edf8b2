import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Conversation } from "./client";
import { withPendingChanges, type Change } from "./pending-changes";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
vi.stubGlobal("navigator", { locks: { request: () => Promise.resolve() } });
const { awaitChanges, repeatOnCurrent, storeInOrder } = await import("./change-queue");
const { Refusal } = await import("./problem");
const { queryClient } = await import("./queries");

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
function change(
  name: string,
  changed: Change,
  before = tides,
  pace?: (send: () => Promise<Conversation>) => Promise<Conversation>,
) {
  let answer!: (value: Partial<Conversation>) => void;
  let refuse!: (reason: Error) => void;
  const answered = new Promise<Partial<Conversation>>((resolve, reject) => ([answer, refuse] = [resolve, reject]));
  const store = async (base: Conversation) => {
    sent.push([name, base.version]);
    return { ...base, ...changed, version: base.version + 1, ...(await answered) };
  };
  const stored = storeInOrder(before, changed, store, pace);
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

test("a change waits for the others of a batch in the order of changes, and its time starts when its request is sent", async () => {
  const timers = vi.spyOn(AbortSignal, "timeout");
  let start!: () => void;
  const turn = new Promise<void>((resolve) => (start = resolve));
  const archive = change("archive", { archived_at: "now" }, tides, (send) => turn.then(send));
  const restore = change("restore", { archived_at: null });
  expect(asks()).toBe(true);
  expect(sent).toEqual([]);
  expect(timers).not.toHaveBeenCalled();
  start();
  archive.answer({});
  await archive.stored;
  restore.answer({});
  expect(await restore.stored).toMatchObject({ archived_at: null });
  expect(sent.map(([name]) => name)).toEqual(["archive", "restore"]);
  expect(timers).toHaveBeenCalledTimes(2);
  expect(asks()).toBe(false);
});

test("the browser asks before it closes the page while a change waits to be repeated, and until the repetition has ended", async () => {
  const answers: ((value: Conversation) => void)[] = [];
  const put = () => new Promise<Conversation>((resolve) => answers.push(resolve));
  const stale = new Refusal(409, "stale_version", "", { current: { ...tides, version: 7 } } as never, 0);
  const stored = storeInOrder(tides, { pinned_at: "now" }, () =>
    Promise.reject<Conversation>(stale).catch((refusal: unknown) => repeatOnCurrent(refusal, put)),
  );
  await vi.waitFor(() => expect(answers.length).toBe(1));
  expect(asks()).toBe(true);
  answers[0]!({ ...tides, pinned_at: "then", version: 8 });
  await stored;
  expect(asks()).toBe(false);
});

test("a refused change is reverted at once to what the newest response has, also to a request that the change overrode", async () => {
  const displayed = () => queryClient.getQueryData<Conversation>(["conversation", "conv_1"]);
  queryClient.setQueryData(["conversation", "conv_1"], { ...tides, version: 9 });
  const first = change("first", { title: "Ebb", title_source: "user" });
  const second = change("second", { title: "Flow", title_source: "user" });
  expect(displayed()).toMatchObject({ title: "Flow", version: 9 });
  withPendingChanges({ ...tides, title: "Generated", title_source: "auto", version: 8 });
  first.refuse(new Error("refused"));
  await expect(first.stored).rejects.toThrow("refused");
  expect(displayed()).toMatchObject({ title: "Flow", title_source: "user" });
  second.refuse(new Error("refused"));
  await expect(second.stored).rejects.toThrow("refused");
  expect(displayed()).toMatchObject({ title: "Generated", title_source: "auto", version: 9 });
  queryClient.clear();
});

test("a refused change is reverted to a title that the service has generated meanwhile, which has no version of its own", async () => {
  queryClient.setQueryData(["conversation", "conv_1"], tides);
  const rename = change("rename", { title: "Ebb", title_source: "user" });
  withPendingChanges({ ...tides, title: "Generated", title_source: "auto" });
  rename.refuse(new Error("refused"));
  await expect(rename.stored).rejects.toThrow("refused");
  expect(queryClient.getQueryData(["conversation", "conv_1"])).toMatchObject({
    title: "Generated",
    title_source: "auto",
  });
  queryClient.clear();
});

test("a sign-out waits until all changes are stored, counts the others, and does not wait for long", async () => {
  expect(await awaitChanges(1_000_000)).toBe(0);
  const pin = change("pin", { pinned_at: "now" });
  const other = change("other", { pinned_at: "now" }, { ...tides, conversation_id: "conv_2" });
  const rename = change("rename", { title: "Ebb" });
  const counted = awaitChanges(1_000_000);
  pin.answer({});
  other.refuse(new Error("refused"));
  rename.answer({});
  expect(await counted).toBe(1);
  await expect(other.stored).rejects.toThrow("refused");
  const late = change("late", { pinned_at: null });
  expect(await awaitChanges(0)).toBe(1);
  late.answer({});
  await late.stored;
});

test("a sign-out does not wait for longer when the clock is set back", async () => {
  const pin = change("pin", { pinned_at: "now" });
  let reads = 0;
  vi.spyOn(Date, "now").mockImplementation(() => {
    if (++reads > 100) throw new Error("the page waits without a pause");
    return -reads;
  });
  expect(await awaitChanges(0)).toBe(1);
  pin.answer({});
  await pin.stored;
});

test("the browser does not ask after a sign-out, because nothing can be stored any more", async () => {
  const { handleSignOut } = await import("./session-state");
  const pin = change("pin", { pinned_at: "now" });
  const unpin = change("unpin", { pinned_at: null });
  expect(asks()).toBe(true);
  handleSignOut(() => expect(asks()).toBe(false));
  pin.answer({});
  unpin.answer({});
  await unpin.stored;
});
