import { describe, expect, test } from "vitest";
import type { Conversation } from "../api/client";
import { dayIn, linesOf, uniqueConversations, neighbour, type Line } from "./groups";

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
    const dayOf = dayIn("Europe/Berlin");
    const steps = Array.from({ length: 4 * 365 }, (_, at) => dayOf(new Date(Date.UTC(2026, 0, 1, 6 * at))));
    expect(steps.every((day, at) => at === 0 || day === steps[at - 1] || day === steps[at - 1]! + 1)).toBe(true);
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

test("a conversation on two pages is listed once, in the version of the first page", () => {
  const [a, b] = [conversation("a", "2026-11-21T00:00:00Z"), conversation("b", "2026-11-20T00:00:00Z")];
  expect(uniqueConversations([{ data: [a, b] }, { data: [{ ...a, title: "old" }] }])).toEqual([a, b]);
  expect(uniqueConversations([])).toEqual([]);
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
