import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Part, TurnEvent } from "../generated/events";
import { awaitsApproval, foldTurn, openTurn, type PartView, type TurnView } from "./fold";
import { random, randomTurn } from "./turn.fake";

const golden = readFileSync(new URL("../../../protocol/testdata/events.golden", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as TurnEvent)
  .filter((event) => event.type !== "turn.snapshot");

describe("folding a turn", () => {
  test("accepts every type of event of the service, in order", () => {
    const events = golden.map((event, at) => ({ ...event, sequence: at + 1 }));
    const view = foldTurn(openTurn(events[0]!.turn_id), events);
    expect(view.last).toBe(events.length);
    expect(view.finished).not.toBeNull();
  });

  // protocol/fold_test.go writes these turns, with the parts that the service makes of them.
  test("gives the same parts as the service", () => {
    const turns = readFileSync(new URL("../../../protocol/testdata/fold.golden", import.meta.url), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { events: TurnEvent[]; parts: Part[] });
    expect(turns.length).toBeGreaterThan(10);
    // A resource has no empty texts.
    const shown = ({ since: _, toolProgress: __, ...part }: PartView) =>
      Object.fromEntries(Object.entries(part).filter(([, value]) => value !== ""));
    for (const [at, { events, parts }] of turns.entries())
      expect(foldTurn(openTurn(events[0]!.turn_id), events).parts.map(shown), `turn ${at}`).toEqual(parts);
  });

  test("any split, repetition and order of the events gives the same view", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const next = random(seed);
      const events = randomTurn(next);
      const whole = foldTurn(openTurn(events[0]!.turn_id), events);
      let view: TurnView = openTurn(events[0]!.turn_id);
      for (const batch of shuffled(events, next)) view = foldTurn(view, batch);
      expect(view, `seed ${seed}`).toEqual(whole);
      expect(view.outOfOrder.size).toBe(0);
    }
  });

  test("a stored message and the events after it give the same parts as the whole log", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const next = random(seed);
      const events = randomTurn(next);
      const whole = foldTurn(openTurn(events[0]!.turn_id), events);
      const covered = 1 + next(events.length - 1);
      const before = foldTurn(openTurn(events[0]!.turn_id), events.slice(0, covered));
      const parts = before.parts.map(({ since: _, ...part }) => part);
      const message = {
        message_id: whole.messageID,
        parent_message_id: whole.userMessageID,
        created_at: "",
        parts,
        covers_sequence: covered,
      };
      const view = foldTurn(openTurn(events[0]!.turn_id, message as never), events.slice(next(covered + 1)));
      const content = (v: TurnView) => v.parts.map(({ since: _, toolProgress: __, ...part }) => part);
      expect(content(view), `seed ${seed}, covered ${covered}`).toEqual(content(whole));
      expect(view.last).toBe(whole.last);
    }
  });

  test("a turn awaits an approval from its request to its decision, also if it is read from a stored message", () => {
    const events = randomTurn(random(1)).slice(0, 2);
    const add = (type: TurnEvent["type"], payload: object) =>
      events.push({ ...events[0]!, sequence: events.length + 1, type, ...payload } as unknown as TurnEvent);
    const call = { part_id: "part_a", tool_id: "tl_a" };
    add("tool.started", { ...call, tool_name: "demo", kind: "connector", title: "Demo", input: {}, state: "pending" });
    add("tool.state", { ...call, from: "pending", state: "awaiting_approval" });
    add("approval.requested", { ...call, approval: { approval_id: "ap_a" } });
    const asked = foldTurn(openTurn(events[0]!.turn_id), events);
    const stored = openTurn(asked.turnID, { covers_sequence: asked.last, parts: asked.parts } as never);
    add("approval.resolved", { ...call, approval_id: "ap_a", decision: "approve_once", by: "user" });
    for (const view of [asked, stored]) {
      expect(awaitsApproval(view)).toBe(true);
      expect(awaitsApproval(foldTurn(view, events))).toBe(false);
    }
  });

  test("the final text of a part is the text of its completed event", () => {
    const [started, , , , ...rest] = golden;
    const view = foldTurn(openTurn(started!.turn_id), [
      { ...started!, sequence: 1 },
      {
        ...started!,
        type: "answer.started",
        sequence: 2,
        part_id: "part_1",
        index: 0,
        format: "markdown",
      } as TurnEvent,
      { ...started!, type: "answer.delta", sequence: 3, part_id: "part_1", offset: 0, delta: "abc" } as TurnEvent,
      {
        ...started!,
        type: "answer.completed",
        sequence: 4,
        part_id: "part_1",
        text: "abcd",
        citations: [],
      } as TurnEvent,
    ]);
    expect(view.parts).toMatchObject([{ text: "abcd" }]);
    expect(view.parts[0]).not.toHaveProperty("open");
    expect(rest.length).toBeGreaterThan(0);
  });

  test("events that are already folded return the same view", () => {
    const events = randomTurn(random(7));
    const view = foldTurn(openTurn(events[0]!.turn_id), events);
    expect(foldTurn(view, events)).toBe(view);
    expect(foldTurn(view, [])).toBe(view);
  });

  test("events of a later version advance the sequence and change nothing else", () => {
    const events = randomTurn(random(3));
    const newer = { ...events[0]!, type: "planet.aligned", sequence: events.length } as unknown as TurnEvent;
    const cut = events.slice(0, -1);
    const view = foldTurn(openTurn(events[0]!.turn_id), [...cut, newer]);
    expect(view.last).toBe(events.length);
    expect(view.parts).toEqual(foldTurn(openTurn(events[0]!.turn_id), cut).parts);
  });
});

/** The same events in batches, some of them repeated and some out of order. */
function shuffled(events: TurnEvent[], next: (below: number) => number): TurnEvent[][] {
  const order = [...events, ...events.filter(() => next(3) === 0)];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.max(0, i - next(12));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  const batches: TurnEvent[][] = [];
  while (order.length > 0) batches.push(order.splice(0, 1 + next(9)));
  return batches;
}
