import { expect, test, vi } from "vitest";
import { TabLocks } from "./tab-locks";

/** The locks of a browser, which all tabs share. */
class FakeLocks {
  readonly held = new Set<string>();
  readonly #ends = new Map<string, Promise<unknown>>();
  request = (async (name: string, ...rest: [LockGrantedCallback<void>] | [LockOptions, LockGrantedCallback<void>]) => {
    const work = rest.at(-1) as LockGrantedCallback<void>;
    const { signal } = rest.length === 2 ? rest[0] : {};
    const aborted = new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    if (this.held.has(name)) await Promise.race([this.#ends.get(name), aborted]);
    this.held.add(name);
    const end = Promise.resolve(work({ name, mode: "exclusive" })).finally(() => this.held.delete(name));
    this.#ends.set(name, end);
    return end;
  }) as LockManager["request"];
  query = async () => ({ held: [...this.held].map((name) => ({ name })) });
}

const tabs = (...names: string[]) => {
  const browser = new FakeLocks();
  return [browser, ...names.map((tab) => new TabLocks("edit", () => browser, tab))] as [FakeLocks, ...TabLocks[]];
};

test("a tab sees what other tabs have not stored, and not its own", async () => {
  const [browser, first, second, third] = tabs("1", "2", "3");
  expect(await first!.ofOtherTabs()).toEqual([]);
  first!.hold(new Set(["art_a"]));
  second!.hold(new Set(["art_a", "art_b"]));
  second!.hold(new Set(["art_a", "art_b"])); // the locks that it has are not requested again
  browser.held.add("turnstone-outbox"); // of another part of the app
  expect((await first!.ofOtherTabs()).sort()).toEqual(["art_a", "art_b"]);
  expect(await second!.ofOtherTabs()).toEqual(["art_a"]);
  expect((await third!.ofOtherTabs()).sort()).toEqual(["art_a", "art_a", "art_b"]);
  second!.hold(new Set(["art_b"]));
  await new Promise(setImmediate); // a lock is released after its promise
  expect(await first!.ofOtherTabs()).toEqual(["art_b"]);
  second!.hold(new Set());
  await new Promise(setImmediate);
  expect(await first!.ofOtherTabs()).toEqual([]);
});

test("a tab waits until other tabs have stored, also after a failure, and not for long", async () => {
  const [, first, second] = tabs("1", "2");
  const limit = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockReturnValue(limit.signal);
  expect(await first!.awaitOtherTabs(1_000)).toBe(0);
  let store!: () => void;
  let refuse!: (reason: Error) => void;
  second!.holdUntil(new Promise<void>((resolve) => (store = resolve)));
  second!.holdUntil(new Promise<void>((_, reject) => (refuse = reject)));
  first!.holdUntil(new Promise(() => {}));
  let left: number | undefined;
  const counted = first!.awaitOtherTabs(1_000).then((count) => (left = count));
  store();
  await new Promise(setImmediate);
  expect(left).toBeUndefined();
  refuse(new Error("refused"));
  expect(await counted).toBe(0);
  second!.holdUntil(new Promise(() => {}));
  const late = first!.awaitOtherTabs(1_000);
  await new Promise(setImmediate);
  limit.abort();
  expect(await late).toBe(1);
  vi.restoreAllMocks();
});
