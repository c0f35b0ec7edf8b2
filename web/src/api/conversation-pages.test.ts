import { describe, expect, test } from "vitest";
import type { Conversation } from "./client";
import { find, repetitions, replaceConversation, uniqueConversations } from "./conversation-pages";

const one = (id: string, title = id) => ({ conversation_id: id, title }) as unknown as Conversation;
const page = (...ids: string[]) => ({ data: ids.map((id) => one(id)) });

test("a conversation is found on any page, and replacing it changes only its page", () => {
  const list = { pages: [page("a", "b"), page("c")], pageParams: [null, "b"] };
  expect(find([list.pages[0]!.data, list.pages[1]!.data], "c")?.title).toBe("c");
  expect(find([list.pages[0]!.data, list.pages[1]!.data], "d")).toBeUndefined();
  const changed = replaceConversation(list, "b", () => one("b", "B"));
  expect(changed.pages.map(({ data }) => data.map(({ title }) => title))).toEqual([["a", "B"], ["c"]]);
  expect(changed.pages[1]).toBe(list.pages[1]);
  const removed = replaceConversation(changed, "c", () => null);
  expect(removed.pages.map(({ data }) => data.map(({ title }) => title))).toEqual([["a", "B"], []]);
  expect(removed.pages[0]).toBe(changed.pages[0]);
  expect(replaceConversation(list, "d", () => null)).toBe(list);
  expect(replaceConversation(list, "a", (same) => same)).toBe(list);
});

describe("repeated conversations", () => {
  test("are noticed when a page comes, and forgotten when it goes", () => {
    const [first, second, third] = [page("a", "b").data, page("c").data, page("b", "c").data];
    const repeats = repetitions();
    expect(repeats([first, second])).toBe(false);
    expect(repeats([first, second, third])).toBe(true);
    expect(repeats([first, third])).toBe(true);
    expect(repeats([second, first])).toBe(false);
    expect(repeats([])).toBe(false);
    expect(repeats([third, second])).toBe(true);
  });
});

test("a conversation on two pages is listed once, in the version of the first page", () => {
  const [a, b] = [one("a"), one("b")];
  expect(uniqueConversations([{ data: [a, b] }, { data: [one("a", "old")] }])).toEqual([a, b]);
  expect(uniqueConversations([])).toEqual([]);
});
