import { describe, expect, test } from "vitest";
import type { TurnEvent } from "../generated/events";
import { foldTurn, openTurn, type TurnView } from "./fold";
import type { ConnectionState } from "./follow";
import { FakeStreams } from "./stream.fake";
import { Tabs } from "./tabs";
import { random, randomTurn } from "./turn.fake";

/** The tabs of one browser: one channel, one leader, and a method that crashes a tab without notice. */
class FakeBrowserTabs {
  readonly streams = new FakeStreams();
  readonly #listeners = new Map<FakeTab, (message: Event) => void>();
  #lead: FakeTab | null = null;
  readonly #waiting: FakeTab[] = [];

  openTab(): FakeTab {
    return new FakeTab(this);
  }

  post(from: FakeTab, message: unknown): void {
    for (const [tab, listener] of this.#listeners) {
      if (tab === from) continue;
      const copy = structuredClone(message);
      queueMicrotask(() => !tab.crashed && listener({ data: copy } as MessageEvent));
    }
  }

  listen(tab: FakeTab, listener: (message: Event) => void): void {
    this.#listeners.set(tab, listener);
  }

  elect(tab: FakeTab): void {
    this.#waiting.push(tab);
    this.#next();
  }

  get leader(): FakeTab {
    return this.#lead!;
  }

  /** Crashes a tab: it sends nothing more, its connections break, and another tab may lead. */
  crash(tab: FakeTab): void {
    tab.crashed = true;
    this.#listeners.delete(tab);
    tab.gone.abort();
    if (this.#lead === tab) this.#lead = null;
    this.#next();
  }

  #next(): void {
    if (this.#lead !== null) return;
    const next = this.#waiting.find((tab) => !tab.crashed);
    if (next === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    this.#lead = next;
    queueMicrotask(() => void next.lead());
  }
}

class FakeTab {
  crashed = false;
  readonly gone = new AbortController();
  readonly views = new Map<string, TurnView>();
  readonly links = new Map<string, ConnectionState>();
  readonly items: string[] = [];
  feedOpen = false;
  lead: () => Promise<void> = () => Promise.resolve();
  readonly tabs: Tabs;

  constructor(readonly browser: FakeBrowserTabs) {
    this.tabs = new Tabs({
      fetch: (input, init) =>
        browser.streams.fetch(input, {
          ...init,
          signal: AbortSignal.any([this.gone.signal, ...(init?.signal ? [init.signal] : [])]),
        }),
      pause: () => (this.crashed ? new Promise<void>(() => {}) : new Promise((resolve) => setImmediate(resolve))),
      channel: {
        postMessage: (message: unknown) => this.crashed || browser.post(this, message),
        addEventListener: (_: string, listener: EventListenerOrEventListenerObject) =>
          browser.listen(this, listener as (message: Event) => void),
        removeEventListener: () => {},
      } as Pick<BroadcastChannel, "postMessage" | "addEventListener" | "removeEventListener">,
      elect: (lead) => {
        this.lead = lead;
        browser.elect(this);
      },
    });
  }

  followFeed(): void {
    this.tabs.followFeed({
      items: (items) => void (this.crashed || this.items.push(...items.map(({ type }) => type))),
      open: (open) => void (this.feedOpen = open),
    });
  }

  watch(turn: string, after = 0, events: readonly TurnEvent[] = []): () => void {
    this.views.set(turn, foldTurn(openTurn(turn as TurnView["turnID"]), events.slice(0, after)));
    return this.tabs.follow(turn, after, {
      events: (batch) => {
        if (this.crashed) return;
        this.views.set(turn, foldTurn(this.views.get(turn)!, batch));
      },
      link: (link) => void this.links.set(turn, link),
    });
  }
}

/** Waits until a condition is true. */
async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`timed out waiting for ${what}`);
}

const turnOfSeed = (seed: number, id = `turn_${seed}`): TurnEvent[] => randomTurn(random(seed), id);

describe("tabs", () => {
  test("all tabs get the feed over one connection, and a new leader continues it without a gap", async () => {
    const tabs = new FakeBrowserTabs();
    const all = Array.from({ length: 4 }, () => tabs.openTab());
    for (const tab of all) tab.followFeed();
    await until(() => tabs.streams.feeds === 1, "the connection");
    tabs.streams.report("one.changed");
    tabs.streams.report("two.changed");
    await until(() => all.every((tab) => tab.items.length === 2 && tab.feedOpen), "the first items");
    expect(tabs.streams.feeds).toBe(1);
    const late = tabs.openTab();
    late.followFeed();
    await until(() => late.feedOpen, "the connection in the new tab");
    tabs.crash(tabs.leader);
    tabs.streams.report("three.changed");
    const left = all.filter((tab) => !tab.crashed);
    await until(() => left.every((tab) => tab.items.length === 3), "the item during the change of the leader");
    for (const tab of left) expect(tab.items).toEqual(["one.changed", "two.changed", "three.changed"]);
    expect(tabs.streams.feedRequests).toEqual([null, "2"]);
    expect(tabs.streams.feeds).toBe(1);
  });

  test("many tabs that follow one turn share one connection and get the same events", async () => {
    const tabs = new FakeBrowserTabs();
    const events = turnOfSeed(3);
    tabs.streams.append("turn_3", events.slice(0, 4));
    const all = Array.from({ length: 6 }, () => tabs.openTab());
    for (const tab of all) tab.watch("turn_3");
    await until(() => all.every((tab) => tab.views.get("turn_3")!.last === 4), "the first events");
    const late = tabs.openTab();
    late.watch("turn_3", 2, events);
    tabs.streams.append("turn_3", events.slice(4));
    const whole = foldTurn(openTurn("turn_3"), events);
    await until(() => [...all, late].every((tab) => tab.views.get("turn_3")!.finished !== null), "the end");
    for (const tab of [...all, late]) expect(tab.views.get("turn_3")).toEqual(whole);
    expect(tabs.streams.maxOpen).toBe(1);
  });

  test("a tab that starts before the stored log of the leader gets all events", async () => {
    const tabs = new FakeBrowserTabs();
    const events = turnOfSeed(8);
    tabs.streams.append("turn_8", events.slice(0, 6));
    const near = tabs.openTab();
    near.watch("turn_8", 5, events);
    await until(() => near.views.get("turn_8")!.last === 6, "the tab that starts late in the turn");
    const far = tabs.openTab();
    far.watch("turn_8");
    await until(() => far.views.get("turn_8")!.last === 6, "the tab that starts at the beginning");
    expect(tabs.streams.openFor("turn_8")).toBe(1);
    tabs.streams.append("turn_8", events.slice(6));
    const whole = foldTurn(openTurn("turn_8"), events);
    await until(
      () => near.views.get("turn_8")!.finished !== null && far.views.get("turn_8")!.finished !== null,
      "the end",
    );
    expect(near.views.get("turn_8")).toEqual(whole);
    expect(far.views.get("turn_8")).toEqual(whole);
  });

  test("at most three turns are followed at once; further turns wait for a slot", async () => {
    const tabs = new FakeBrowserTabs();
    const turns = Array.from({ length: 9 }, (_, at) => turnOfSeed(at + 1));
    for (const events of turns) tabs.streams.append(events[0]!.turn_id, events.slice(0, 3));
    const all = [tabs.openTab(), tabs.openTab(), tabs.openTab()];
    turns.forEach((events, at) => all[at % 3]!.watch(events[0]!.turn_id));
    await until(() => tabs.streams.open === 3, "three connections");
    for (const events of turns) {
      tabs.streams.append(events[0]!.turn_id, events.slice(3));
      await until(
        () => all.some((tab) => tab.views.get(events[0]!.turn_id)?.finished != null),
        `the end of ${events[0]!.turn_id}`,
      );
    }
    expect(tabs.streams.maxOpen).toBe(3);
    turns.forEach((events, at) =>
      expect(all[at % 3]!.views.get(events[0]!.turn_id)).toEqual(foldTurn(openTurn(events[0]!.turn_id), events)),
    );
  });

  test("a slot is free again when no tab follows its turn", async () => {
    const tabs = new FakeBrowserTabs();
    const turns = Array.from({ length: 4 }, (_, at) => turnOfSeed(at + 20));
    for (const events of turns) tabs.streams.append(events[0]!.turn_id, events.slice(0, 2));
    const tab = tabs.openTab();
    const stops = turns.map((events) => tab.watch(events[0]!.turn_id));
    await until(() => tabs.streams.open === 3, "three connections");
    expect(tab.views.get(turns[3]![0]!.turn_id)!.last).toBe(0);
    stops[0]!();
    await until(() => tab.views.get(turns[3]![0]!.turn_id)!.last === 2, "the fourth turn");
    expect(tabs.streams.maxOpen).toBe(3);
  });

  test("when the leader crashes after any event, the other tabs continue without a gap", async () => {
    const events = turnOfSeed(41);
    for (let cut = 1; cut < events.length; cut++) {
      const tabs = new FakeBrowserTabs();
      tabs.streams.append("turn_41", events.slice(0, cut));
      const all = [tabs.openTab(), tabs.openTab(), tabs.openTab()];
      all.forEach((tab) => tab.watch("turn_41"));
      // For an odd cut the leader crashes before every tab has received the events.
      if (cut % 2 === 0)
        await until(() => all.every((tab) => tab.views.get("turn_41")!.last === cut), "the events before the crash");
      else await until(() => tabs.leader !== null && tabs.streams.open > 0, "a connection");
      tabs.crash(tabs.leader);
      tabs.streams.append("turn_41", events.slice(cut));
      const others = all.filter((tab) => !tab.crashed);
      expect(others.length).toBe(2);
      await until(() => others.every((tab) => tab.views.get("turn_41")!.finished !== null), `the end, after ${cut}`);
      const whole = foldTurn(openTurn("turn_41"), events);
      for (const tab of others) expect(tab.views.get("turn_41"), `lost after ${cut}`).toEqual(whole);
      expect(tabs.streams.openFor("turn_41")).toBe(0);
    }
  });

  test("after a sign-in every turn is followed again from its last position", async () => {
    const tabs = new FakeBrowserTabs();
    const events = turnOfSeed(50);
    tabs.streams.append("turn_50", events.slice(0, 3));
    const tab = tabs.openTab();
    const workingFetch = tabs.streams.fetch;
    let signedOut = true;
    tabs.streams.fetch = (input, init) =>
      signedOut
        ? Promise.resolve(Response.json({ status: 401, code: "unauthenticated" }, { status: 401 }))
        : workingFetch(input, init);
    tab.watch("turn_50");
    await until(() => tab.links.get("turn_50") === "signed_out", "the refusal");
    signedOut = false;
    tab.tabs.followAllAgain();
    tabs.streams.append("turn_50", events.slice(3));
    await until(() => tab.views.get("turn_50")!.finished !== null, "the end");
    expect(tab.views.get("turn_50")).toEqual(foldTurn(openTurn("turn_50"), events));
  });

  test("a 401 that arrives only after the sign-in ends neither the feed nor a turn", async () => {
    const tabs = new FakeBrowserTabs();
    const events = turnOfSeed(51);
    tabs.streams.append("turn_51", events.slice(0, 3));
    const tab = tabs.openTab();
    const workingFetch = tabs.streams.fetch;
    const refusals: (() => void)[] = [];
    tabs.streams.fetch = () =>
      new Promise((resolve) =>
        refusals.push(() => resolve(Response.json({ status: 401, code: "unauthenticated" }, { status: 401 }))),
      );
    tab.followFeed();
    tab.watch("turn_51");
    await until(() => refusals.length === 2, "the requests");
    tabs.streams.fetch = workingFetch;
    tab.tabs.followAllAgain();
    refusals.forEach((refuse) => refuse());
    tabs.streams.append("turn_51", events.slice(3));
    await until(() => tab.views.get("turn_51")!.finished !== null, "the end");
    expect(tab.views.get("turn_51")).toEqual(foldTurn(openTurn("turn_51"), events));
    tabs.streams.report("one.changed");
    await until(() => tab.items.length === 1, "the item");
  });

  test("every tab that follows a missing turn is notified", async () => {
    const tabs = new FakeBrowserTabs();
    const all = [tabs.openTab(), tabs.openTab()];
    all.forEach((tab) => tab.watch("turn_none"));
    await until(() => all.every((tab) => tab.links.get("turn_none") === "gone"), "the refusal");
  });
});
