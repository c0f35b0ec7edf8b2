import { describe, expect, test } from "vitest";
import type { TurnEvent } from "../generated/events";
import { foldTurn, openTurn, type TurnView } from "./fold";
import type { Link } from "./follow";
import { FakeStreams } from "./stream.fake";
import { Tabs } from "./tabs";
import { random, turnOf } from "./turn.fake";

/** The tabs of one browser: one channel, one lead, and a way to lose a tab without a word. */
class Meetings {
  readonly streams = new FakeStreams();
  readonly #listeners = new Map<Seat, (message: Event) => void>();
  #lead: Seat | null = null;
  readonly #waiting: Seat[] = [];

  sit(): Seat {
    return new Seat(this);
  }

  post(from: Seat, word: unknown): void {
    for (const [seat, listener] of this.#listeners) {
      if (seat === from) continue;
      const copy = structuredClone(word);
      queueMicrotask(() => !seat.dead && listener({ data: copy } as MessageEvent));
    }
  }

  listen(seat: Seat, listener: (message: Event) => void): void {
    this.#listeners.set(seat, listener);
  }

  elect(seat: Seat): void {
    this.#waiting.push(seat);
    this.#next();
  }

  get leader(): Seat {
    return this.#lead!;
  }

  /** A tab is gone, as by a crash: it says nothing, its connections break, its lead is free. */
  lose(seat: Seat): void {
    seat.dead = true;
    this.#listeners.delete(seat);
    seat.gone.abort();
    if (this.#lead === seat) this.#lead = null;
    this.#next();
  }

  #next(): void {
    if (this.#lead !== null) return;
    const next = this.#waiting.find((seat) => !seat.dead);
    if (next === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    this.#lead = next;
    queueMicrotask(() => void next.lead());
  }
}

class Seat {
  dead = false;
  readonly gone = new AbortController();
  readonly views = new Map<string, TurnView>();
  readonly links = new Map<string, Link>();
  lead: () => Promise<void> = () => Promise.resolve();
  readonly tabs: Tabs;

  constructor(readonly room: Meetings) {
    this.tabs = new Tabs({
      fetch: (input, init) => room.streams.fetch(input, { ...init, signal: AbortSignal.any([this.gone.signal, ...(init?.signal ? [init.signal] : [])]) }),
      pause: () => (this.dead ? new Promise<void>(() => {}) : new Promise((resolve) => setImmediate(resolve))),
      channel: {
        postMessage: (word: unknown) => this.dead || room.post(this, word),
        addEventListener: (_: string, listener: EventListenerOrEventListenerObject) => room.listen(this, listener as (message: Event) => void),
        removeEventListener: () => {},
      } as Pick<BroadcastChannel, "postMessage" | "addEventListener" | "removeEventListener">,
      elect: (lead) => {
        this.lead = lead;
        room.elect(this);
      },
    });
  }

  watch(turn: string, after = 0, events: readonly TurnEvent[] = []): () => void {
    this.views.set(turn, foldTurn(openTurn(turn as TurnView["turnID"]), events.slice(0, after)));
    return this.tabs.want(turn, after, {
      events: (batch) => {
        if (this.dead) return;
        this.views.set(turn, foldTurn(this.views.get(turn)!, batch));
      },
      link: (link) => void this.links.set(turn, link),
    });
  }
}

/** Waits for something that is about to happen. */
async function until(so: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) {
    if (so()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`never: ${what}`);
}

const made = (seed: number, id = `turn_${seed}`): TurnEvent[] => turnOf(random(seed), id);

describe("tabs", () => {
  test("many tabs that watch one turn share one connection, and all see the same", async () => {
    const room = new Meetings();
    const events = made(3);
    room.streams.happen("turn_3", events.slice(0, 4));
    const seats = Array.from({ length: 6 }, () => room.sit());
    for (const seat of seats) seat.watch("turn_3");
    await until(() => seats.every((seat) => seat.views.get("turn_3")!.last === 4), "the first events");
    const late = room.sit();
    late.watch("turn_3", 2, events);
    room.streams.happen("turn_3", events.slice(4));
    const whole = foldTurn(openTurn("turn_3"), events);
    await until(() => [...seats, late].every((seat) => seat.views.get("turn_3")!.finished !== null), "the end");
    for (const seat of [...seats, late]) expect(seat.views.get("turn_3")).toEqual(whole);
    expect(room.streams.most).toBe(1);
  });

  test("one that begins further back than what is kept gets all of it", async () => {
    const room = new Meetings();
    const events = made(8);
    room.streams.happen("turn_8", events.slice(0, 6));
    const near = room.sit();
    near.watch("turn_8", 5, events);
    await until(() => near.views.get("turn_8")!.last === 6, "the near one");
    const far = room.sit();
    far.watch("turn_8");
    await until(() => far.views.get("turn_8")!.last === 6, "the far one");
    expect(room.streams.openFor("turn_8")).toBe(1);
    room.streams.happen("turn_8", events.slice(6));
    const whole = foldTurn(openTurn("turn_8"), events);
    await until(() => near.views.get("turn_8")!.finished !== null && far.views.get("turn_8")!.finished !== null, "the end");
    expect(near.views.get("turn_8")).toEqual(whole);
    expect(far.views.get("turn_8")).toEqual(whole);
  });

  test("at most four connections; the other turns come when there is a place", async () => {
    const room = new Meetings();
    const turns = Array.from({ length: 9 }, (_, at) => made(at + 1));
    for (const events of turns) room.streams.happen(events[0]!.turn_id, events.slice(0, 3));
    const seats = [room.sit(), room.sit(), room.sit()];
    turns.forEach((events, at) => seats[at % 3]!.watch(events[0]!.turn_id));
    await until(() => room.streams.open === 4, "four connections");
    for (const events of turns) {
      room.streams.happen(events[0]!.turn_id, events.slice(3));
      await until(() => seats.some((seat) => seat.views.get(events[0]!.turn_id)?.finished != null), `the end of ${events[0]!.turn_id}`);
    }
    expect(room.streams.most).toBe(4);
    turns.forEach((events, at) => expect(seats[at % 3]!.views.get(events[0]!.turn_id)).toEqual(foldTurn(openTurn(events[0]!.turn_id), events)));
  });

  test("a place is free again when nobody watches", async () => {
    const room = new Meetings();
    const turns = Array.from({ length: 5 }, (_, at) => made(at + 20));
    for (const events of turns) room.streams.happen(events[0]!.turn_id, events.slice(0, 2));
    const seat = room.sit();
    const leaves = turns.map((events) => seat.watch(events[0]!.turn_id));
    await until(() => room.streams.open === 4, "four connections");
    expect(seat.views.get(turns[4]![0]!.turn_id)!.last).toBe(0);
    leaves[0]!();
    await until(() => seat.views.get(turns[4]![0]!.turn_id)!.last === 2, "the fifth");
    expect(room.streams.most).toBe(4);
  });

  test("when the tab that leads dies, whenever that is, the others go on without a gap", async () => {
    const events = made(41);
    for (let cut = 1; cut < events.length; cut++) {
      const room = new Meetings();
      room.streams.happen("turn_41", events.slice(0, cut));
      const seats = [room.sit(), room.sit(), room.sit()];
      seats.forEach((seat) => seat.watch("turn_41"));
      // At odd places the leader dies before anybody has heard all of it.
      if (cut % 2 === 0) await until(() => seats.every((seat) => seat.views.get("turn_41")!.last === cut), "what came before");
      else await until(() => room.leader !== null && room.streams.open > 0, "a connection");
      room.lose(room.leader);
      room.streams.happen("turn_41", events.slice(cut));
      const left = seats.filter((seat) => !seat.dead);
      expect(left.length).toBe(2);
      await until(() => left.every((seat) => seat.views.get("turn_41")!.finished !== null), `the end, after ${cut}`);
      const whole = foldTurn(openTurn("turn_41"), events);
      for (const seat of left) expect(seat.views.get("turn_41"), `lost after ${cut}`).toEqual(whole);
      expect(room.streams.openFor("turn_41")).toBe(0);
    }
  });

  test("after a sign-in everything is followed again from where it was", async () => {
    const room = new Meetings();
    const events = made(50);
    room.streams.happen("turn_50", events.slice(0, 3));
    const seat = room.sit();
    const signedOut = room.streams.fetch;
    let out = true;
    room.streams.fetch = (input, init) => (out ? Promise.resolve(Response.json({ status: 401, code: "unauthenticated" }, { status: 401 })) : signedOut(input, init));
    seat.watch("turn_50");
    await until(() => seat.links.get("turn_50") === "signed_out", "the refusal");
    out = false;
    seat.tabs.again();
    room.streams.happen("turn_50", events.slice(3));
    await until(() => seat.views.get("turn_50")!.finished !== null, "the end");
    expect(seat.views.get("turn_50")).toEqual(foldTurn(openTurn("turn_50"), events));
  });

  test("a turn that does not exist is told to whoever watches it", async () => {
    const room = new Meetings();
    const seats = [room.sit(), room.sit()];
    seats.forEach((seat) => seat.watch("turn_none"));
    await until(() => seats.every((seat) => seat.links.get("turn_none") === "gone"), "the refusal");
  });
});
