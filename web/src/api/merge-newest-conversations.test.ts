import { expect, test } from "vitest";
import type { Schemas } from "./client";
import { mergeNewestConversations } from "./merge-newest-conversations";

type List = Schemas["ListConversation"];

/** A page with the conversations of the given numbers, whose time of activity is their number of seconds. */
const page = (numbers: readonly number[], cursor: string | null): List =>
  ({
    data: numbers.map((number) => ({
      conversation_id: `conv_${number % 1000}`,
      pinned_at: null,
      last_activity_at: new Date(number * 1000).toISOString(),
    })),
    next_cursor: cursor,
    has_more: cursor !== null,
  }) as unknown as List;

const down = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, at) => from - at);
const known = { pages: [page(down(30, 21), "21"), page(down(20, 11), "11"), page(down(10, 1), null)], pageParams: [] };
const numbers = (pages: readonly List[]) =>
  pages.flatMap(({ data }) => data.map(({ conversation_id }) => Number(conversation_id.slice(5))));

test("new, moved and deleted conversations are where the service has them, and older pages stay", () => {
  const merged = (newest: readonly number[]) => numbers(mergeNewestConversations(known, page(newest, "…"))!.pages);
  expect(merged(down(30, 21))).toEqual(down(30, 1));
  expect(merged(down(33, 24))).toEqual(down(33, 1));
  // 5 was active again; 25 was deleted
  expect(merged([1005, ...down(30, 26), ...down(24, 21)])).toEqual([5, ...down(30, 26), ...down(24, 6), ...down(4, 1)]);
});

test("older pages from which nothing moved stay the same objects", () => {
  const merged = mergeNewestConversations(known, page([1005, ...down(30, 22)], "…"))!;
  expect(merged.pages[1]).toBe(known.pages[1]);
  expect(merged.pages[2]).not.toBe(known.pages[2]);
});

test("pages are fetched again if the newest page does not reach the known ones", () => {
  expect(mergeNewestConversations(known, page(down(50, 41), "41"))).toBeNull();
  // 30 was active again, and more conversations follow than the page has
  expect(mergeNewestConversations(known, page([...down(50, 42), 1030], "…"))).toBeNull();
});

test("a newest page without a successor is the whole list", () => {
  expect(numbers(mergeNewestConversations(known, page([3, 2], null))!.pages)).toEqual([3, 2]);
});
