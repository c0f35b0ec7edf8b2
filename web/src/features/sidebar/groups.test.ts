import { describe, expect, test } from "vitest";
import type { Conversation } from "../../api/client";
import { haveSameKeys, linesOf as linesOfParts, listedParts, neighbour, type Line } from "./groups";

function conversation(id: string, at: string, pinned = false): Conversation {
  return {
    conversation_id: id,
    title: id,
    title_source: "user",
    active_branch_id: "",
    archived_at: null,
    created_at: at,
    head_message_id: null,
    last_activity_at: at,
    live_turn_id: null,
    message_count: 0,
    has_draft: false,
    metadata: {},
    pinned_at: pinned ? at : null,
    profile: null,
    project_id: null,
    temporary: false,
    unread: false,
    updated_at: at,
    version: 1,
  };
}

/** The lines are the same however the list is divided. */
function linesOf(list: readonly Conversation[], now: Date, zone: string): readonly Line[] {
  const lines = linesOfParts([list], now, zone);
  for (let at = 0; at < list.length; at++)
    expect(linesOfParts([list.slice(0, at), [], list.slice(at)], now, zone)).toEqual(lines);
  expect(linesOfParts([...list.map((one) => [one]), []], now, zone)).toEqual(lines);
  return lines;
}

/** Returns one string for each group, for example "today: a b". */
function linesAsText(lines: readonly Line[]): string[] {
  const groups: string[] = [];
  for (const line of lines) {
    if (line.kind === "group")
      groups.push(`${line.group.name === "earlier" ? line.group.month.toISOString().slice(0, 7) : line.group.name}:`);
    else groups[groups.length - 1] += ` ${line.key}`;
  }
  return groups;
}

test("lines have the same keys while only titles change", () => {
  const now = new Date("2026-11-20T15:30:00Z");
  const at = "2026-11-20T15:00:00Z";
  const lines = linesOfParts([[conversation("a", at), conversation("b", at)]], now, "UTC");
  const renamed = [{ ...conversation("a", at), title: "Tides" }, conversation("b", at)];
  expect(haveSameKeys(lines, linesOfParts([renamed], now, "UTC"))).toBe(true);
  for (const other of [renamed.slice(1), renamed.toReversed(), [...renamed, conversation("c", at)]])
    expect(haveSameKeys(lines, linesOfParts([other], now, "UTC"))).toBe(false);
});

describe("grouping conversations by time", () => {
  test("a day starts at midnight in the reader's time zone", () => {
    const list = [conversation("a", "2026-11-20T15:00:00Z"), conversation("b", "2026-11-20T14:59:59.999Z")];
    const now = new Date("2026-11-20T15:30:00Z"); // 00:30 of the 21st in Tokyo
    expect(linesAsText(linesOf(list, now, "Asia/Tokyo"))).toEqual(["today: a", "yesterday: b"]);
    expect(linesAsText(linesOf(list, now, "UTC"))).toEqual(["today: a b"]);
    // The activity of a is later than this clock.
    expect(linesAsText(linesOf(list, new Date("2026-11-20T14:59:59Z"), "Asia/Tokyo"))).toEqual(["today: a b"]);
  });

  test("a day of 23 or 25 hours is one day", () => {
    // Berlin: 25 October 2026 has 25 hours, 29 March 2026 has 23.
    const autumn = [
      conversation("a", "2026-10-25T22:59:00Z"),
      conversation("b", "2026-10-24T22:00:00Z"),
      conversation("c", "2026-10-24T21:59:00Z"),
    ];
    expect(linesAsText(linesOf(autumn, new Date("2026-10-25T23:00:00Z"), "Europe/Berlin"))).toEqual([
      "yesterday: a b",
      "week: c",
    ]);
    const spring = [
      conversation("a", "2026-03-29T21:59:00Z"),
      conversation("b", "2026-03-28T23:00:00Z"),
      conversation("c", "2026-03-28T22:59:00Z"),
    ];
    expect(linesAsText(linesOf(spring, new Date("2026-03-29T22:00:00Z"), "Europe/Berlin"))).toEqual([
      "yesterday: a b",
      "week: c",
    ]);
  });

  test("older conversations are grouped by 7 days, 30 days and month", () => {
    const list = [
      "2026-11-21",
      "2026-11-20",
      "2026-11-19",
      "2026-11-14",
      "2026-11-13",
      "2026-10-22",
      "2026-10-21",
      "2026-10-01",
      "2025-12-31",
    ].map((day) => conversation(day, `${day}T12:00:00Z`));
    expect(linesAsText(linesOf(list, new Date("2026-11-21T12:00:00Z"), "UTC"))).toEqual([
      "today: 2026-11-21",
      "yesterday: 2026-11-20",
      "week: 2026-11-19 2026-11-14",
      "month: 2026-11-13 2026-10-22",
      "2026-10: 2026-10-21 2026-10-01",
      "2025-12: 2025-12-31",
    ]);
  });

  test("pinned conversations have a group of their own, whatever their date", () => {
    const list = [conversation("old", "2020-01-01T00:00:00Z", true), conversation("new", "2026-11-21T00:00:00Z")];
    expect(linesAsText(linesOf(list, new Date("2026-11-21T12:00:00Z"), "UTC"))).toEqual(["pinned: old", "today: new"]);
  });

  test("every line has a unique key and every conversation has a line, even if the order is temporarily wrong", () => {
    const list = [
      conversation("a", "2026-11-21T00:00:00Z"),
      conversation("b", "2026-11-01T00:00:00Z"),
      conversation("c", "2026-11-21T01:00:00Z"),
    ];
    const lines = linesOf(list, new Date("2026-11-21T12:00:00Z"), "UTC");
    expect(new Set(lines.map(({ key }) => key)).size).toBe(lines.length);
    expect(lines.filter(({ kind }) => kind === "conversation").map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });
});

describe("moving through the list", () => {
  const lines = linesOf(
    [
      conversation("a", "2026-11-21T00:00:00Z"),
      conversation("b", "2026-11-20T00:00:00Z"),
      conversation("c", "2026-11-20T00:00:00Z"),
    ],
    new Date("2026-11-21T12:00:00Z"),
    "UTC",
  );

  test("headings are skipped, and there is no neighbour beyond the ends", () => {
    expect(neighbour(lines, "a", "ArrowDown")).toBe("b");
    expect(neighbour(lines, "b", "ArrowUp")).toBe("a");
    expect(neighbour(lines, "c", "ArrowDown")).toBeNull();
    expect(neighbour(lines, "a", "ArrowUp")).toBeNull();
    expect(neighbour(lines, "b", "Home")).toBe("a");
    expect(neighbour(lines, "a", "End")).toBe("c");
    expect(neighbour(lines, "a", "x")).toBeNull();
    expect(neighbour([], null, "End")).toBeNull();
  });
});

describe("a list of many pages", () => {
  const at = (n: number) => new Date(Date.UTC(2026, 10, 21) - n * 3_600_000).toISOString();
  const page = (first: number) => ({
    data: Array.from({ length: 50 }, (_, n) => conversation(String(first + n), at(first + n))),
  });
  const pages = Array.from({ length: 40 }, (_, n) => page(50 * n));
  const [first, ...rest] = pages;

  test("a change of one page leaves the others as they are", () => {
    const [pinned, ...before] = listedParts(pages);
    expect(pinned).toEqual([]);
    expect(before.flat().map((one) => one.conversation_id)).toEqual(Array.from({ length: 2_000 }, (_, n) => String(n)));
    const changed = { data: [conversation("new", at(-1)), ...first!.data] };
    const [, ...after] = listedParts([changed, ...rest]);
    expect(after[0]).toEqual(changed.data);
    expect(after.filter((part, n) => part !== before[n]).length).toBe(1);
    const lines = (parts: ReturnType<typeof listedParts>) => linesOfParts(parts, new Date(at(0)), "UTC");
    const [one, other] = [lines(before), lines(after)];
    expect(other.filter((line) => !one.includes(line)).length).toBeLessThanOrEqual(first!.data.length + 4);
  });

  test("pinned conversations are at the top, archived ones in no place, and each one is listed once", () => {
    const ids = (list: typeof pages) =>
      listedParts(list)
        .flat()
        .map((one) => one.conversation_id);
    const pinned = { data: rest[3]!.data.map((one, n) => (n === 7 ? { ...one, pinned_at: at(0) } : one)) };
    const archived = { data: rest[4]!.data.map((one) => ({ ...one, archived_at: at(0) })) };
    const listed = ids([first!, rest[0]!, rest[1]!, rest[2]!, pinned, archived]);
    expect(listed.slice(0, 3)).toEqual(["207", "0", "1"]);
    expect(listed.length).toBe(250);
    const repeated = { data: [...first!.data.slice(3, 5), ...rest[0]!.data] };
    expect(ids([first!, repeated])).toEqual(Array.from({ length: 100 }, (_, n) => String(n)));
    expect(ids([first!, rest[0]!])).toEqual(Array.from({ length: 100 }, (_, n) => String(n)));
  });
});
