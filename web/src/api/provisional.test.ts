import { expect, test } from "vitest";
import { outboxMessage } from "./delivery.fake";
import { provisionalTitle, withOutbox, withoutTemporary } from "./provisional";

test("a provisional title has at most sixty characters and ends after a word", () => {
  expect(provisionalTitle("  Hello,\n  world! ")).toBe("Hello, world!");
  expect(provisionalTitle("Plan a vegetable garden for a small balcony that faces north, please")).toBe(
    "Plan a vegetable garden for a small balcony that faces…",
  );
  expect(provisionalTitle("東京".repeat(40))).toBe(`${"東京".repeat(29)}東…`);
  expect(provisionalTitle("🙂".repeat(80))).toBe(`${"🙂".repeat(59)}…`);
  expect(provisionalTitle("Explain ```go\nfunc main() {}```")).toBe("Explain");
});

test("a conversation whose first message is being sent is known, but is in no list if it is temporary", () => {
  const messages = [
    outboxMessage("one", 1, { conversationID: "conv_1", newConversation: { profile: null, temporary: true } }),
    outboxMessage("two", 2, { conversationID: "conv_2", newConversation: { profile: null } }),
  ];
  const known = withOutbox([[]], messages);
  expect(known.flat().map(({ title, temporary }) => `${title} ${temporary}`)).toEqual(["two false", "one true"]);
  expect(
    withoutTemporary(known, messages)
      .flat()
      .map(({ title }) => title),
  ).toEqual(["two"]);
});
