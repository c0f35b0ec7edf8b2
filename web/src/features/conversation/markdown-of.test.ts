import { expect, test } from "vitest";
import type { Part } from "../../generated/events";
import { markdownOf } from "./markdown-of";

test("a message is its text and its code; the fence is longer than any fence in the code", () => {
  const parts = [
    { type: "reasoning_summary", part_id: "part_1", text: "hm" },
    { type: "text", part_id: "part_2", text: "One.\n" },
    { type: "tool", part_id: "part_3", title: "Calculate" },
    { type: "code", part_id: "part_4", language: "md", code: "````go\n````" },
  ] as Part[];
  expect(markdownOf(parts)).toBe("One.\n\n`````md\n````go\n````\n`````");
});
