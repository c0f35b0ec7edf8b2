import { describe, expect, test } from "vitest";
import { fenced, splitFences } from "./fences";

describe("fenced code in plain text", () => {
  test("text without fences is unchanged", () => {
    for (const text of ["", "\n a\n\n b \n", "a ``` b", "`code`"]) expect(splitFences(text)).toEqual([{ text }]);
  });

  test("code is separated from the text around it", () => {
    expect(splitFences("one\n\n```js\nlet a;\n\n  b\n```\n\ntwo\n~~~\nc\n~~~")).toEqual([
      { text: "one" },
      { code: "let a;\n\n  b", language: "js" },
      { text: "two" },
      { code: "c", language: "" },
    ]);
  });

  test("a fence is closed by marks of the same kind that are at least as long, or by the end of the text", () => {
    expect(splitFences("````\n```\n~~~~\n````")).toEqual([{ code: "```\n~~~~", language: "" }]);
    expect(splitFences("```py x\na")).toEqual([{ code: "a", language: "py" }]);
    expect(splitFences("a ```js\nb\n```\n")).toEqual([{ text: "a ```js\nb\n```" }]);
    expect(splitFences("```\n```")).toEqual([{ code: "", language: "" }]);
  });
});

test("no text in the code closes its fence", () => {
  for (const code of ["a", "", "```\nb", "  ````` \nb\n```", "a\r```\r\n````", "~~~\nb"])
    expect(splitFences(`one\n\n${fenced(code, "js")}\n\ntwo`), code).toEqual([
      { text: "one" },
      { code, language: "js" },
      { text: "two" },
    ]);
});
