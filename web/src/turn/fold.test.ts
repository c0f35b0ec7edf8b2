import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { TurnEvent } from "../generated/events";
import { foldTurn, openTurn, type TurnView } from "./fold";
import { random, turnOf } from "./turn.fake";

const golden = readFileSync(new URL("../../../protocol/testdata/events.golden", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as TurnEvent)
  .filter((event) => event.type !== "turn.snapshot");

describe("folding a turn", () => {
  test("takes every event that the service has, in order", () => {
    const events = golden.map((event, at) => ({ ...event, sequence: at + 1 }));
    const view = foldTurn(openTurn(events[0]!.turn_id), events);
    expect(view.last).toBe(events.length);
    expect(view.finished).not.toBeNull();
  });

  test("any split, repetition and order gives the same view", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const next = random(seed);
      const events = turnOf(next);
      const whole = foldTurn(openTurn(events[0]!.turn_id), events);
      let view: TurnView = openTurn(events[0]!.turn_id);
      for (const batch of mangled(events, next)) view = foldTurn(view, batch);
      expect(view, `seed ${seed}`).toEqual(whole);
      expect(view.early.size).toBe(0);
    }
  });

  test("a snapshot and what follows it is the message that the whole log makes", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const next = random(seed);
      const events = turnOf(next);
      const whole = foldTurn(openTurn(events[0]!.turn_id), events);
      const covered = 1 + next(events.length - 1);
      const before = foldTurn(openTurn(events[0]!.turn_id), events.slice(0, covered));
      const parts = before.parts.map(({ since: _, ...part }) => part);
      const message = { message_id: whole.messageID, parent_message_id: whole.userMessageID, created_at: "", parts, covers_sequence: covered };
      const view = foldTurn(openTurn(events[0]!.turn_id, message as never), events.slice(next(covered + 1)));
      const content = (v: TurnView) => v.parts.map(({ since: _, step: __, ...part }) => part);
      expect(content(view), `seed ${seed}, covered ${covered}`).toEqual(content(whole));
      expect(view.last).toBe(whole.last);
    }
  });

  test("the last text of a part is the one that its end says", () => {
    const [started, , , , ...rest] = golden;
    const view = foldTurn(openTurn(started!.turn_id), [
      { ...started!, sequence: 1 },
      { ...started!, type: "answer.started", sequence: 2, part_id: "part_1", index: 0, format: "markdown" } as TurnEvent,
      { ...started!, type: "answer.delta", sequence: 3, part_id: "part_1", offset: 0, delta: "abc" } as TurnEvent,
      { ...started!, type: "answer.completed", sequence: 4, part_id: "part_1", text: "abcd", citations: [] } as TurnEvent,
    ]);
    expect(view.parts).toMatchObject([{ text: "abcd" }]);
    expect(view.parts[0]).not.toHaveProperty("open");
    expect(rest.length).toBeGreaterThan(0);
  });

  test("nothing new is the same view", () => {
    const events = turnOf(random(7));
    const view = foldTurn(openTurn(events[0]!.turn_id), events);
    expect(foldTurn(view, events)).toBe(view);
    expect(foldTurn(view, [])).toBe(view);
  });

  test("events of a later version move the sequence and nothing else", () => {
    const events = turnOf(random(3));
    const odd = { ...events[0]!, type: "planet.aligned", sequence: events.length } as unknown as TurnEvent;
    const cut = events.slice(0, -1);
    const view = foldTurn(openTurn(events[0]!.turn_id), [...cut, odd]);
    expect(view.last).toBe(events.length);
    expect(view.parts).toEqual(foldTurn(openTurn(events[0]!.turn_id), cut).parts);
  });
});

/** The same events in batches, some twice, some before their time. */
function mangled(events: TurnEvent[], next: (below: number) => number): TurnEvent[][] {
  const order = [...events, ...events.filter(() => next(3) === 0)];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.max(0, i - next(12));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  const batches: TurnEvent[][] = [];
  while (order.length > 0) batches.push(order.splice(0, 1 + next(9)));
  return batches;
}
