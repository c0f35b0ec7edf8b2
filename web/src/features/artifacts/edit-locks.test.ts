import { expect, test } from "vitest";
import { EditLocks } from "./edit-locks";

/** The locks of a browser, which all tabs share. */
class FakeLocks {
  readonly held = new Set<string>();
  request = ((name: string, work: LockGrantedCallback<void>) => {
    expect(this.held.has(name)).toBe(false);
    this.held.add(name);
    return Promise.resolve(work({ name, mode: "exclusive" })).finally(() => this.held.delete(name));
  }) as LockManager["request"];
  query = async () => ({ held: [...this.held].map((name) => ({ name })) });
}

test("a tab counts the artifacts that other tabs edit, and not its own", async () => {
  const browser = new FakeLocks();
  const [first, second, third] = [new EditLocks(browser), new EditLocks(browser), new EditLocks(browser)];
  expect(await first.ofOtherTabs()).toEqual([]);
  first.hold(new Set(["art_a"]));
  second.hold(new Set(["art_a", "art_b"]));
  second.hold(new Set(["art_a", "art_b"])); // the locks that it has are not requested again
  browser.held.add("turnstone-outbox"); // of another part of the app
  expect((await first.ofOtherTabs()).sort()).toEqual(["art_a", "art_b"]);
  expect(await second.ofOtherTabs()).toEqual(["art_a"]);
  expect((await third.ofOtherTabs()).sort()).toEqual(["art_a", "art_a", "art_b"]);
  second.hold(new Set(["art_b"]));
  await new Promise(setImmediate); // a lock is released after its promise
  expect(await first.ofOtherTabs()).toEqual(["art_b"]);
  second.hold(new Set());
  await new Promise(setImmediate);
  expect(await first.ofOtherTabs()).toEqual([]);
});
