import { expect, test } from "vitest";
import { firstParagraph, plainOf } from "./plain";

test("marks go, words stay", () => {
  expect(plainOf("# A *title*\n\nSome **bold** [link](https://a.example) and `code`\\\nnext & <b>.\n\n- one\n- two\n  1. deep\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | *2* |\n")).toBe(
    "A title\n\nSome bold link and code\nnext & <b>.\n\n- one\n- two\n  1. deep\n\nx := 1\n\na\tb\n1\t2",
  );
});

test("the first paragraph is what is said first", () => {
  expect(firstParagraph("```\ncode\n```\n\nThis *is*\nit.\n\nNot this.")).toBe("This is it.");
  expect(firstParagraph("")).toBe("");
});
