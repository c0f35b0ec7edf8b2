import { expect, test } from "vitest";
import { firstParagraph, toPlainText, toSearchedText } from "./plain";

test("marks are removed and the text is kept", () => {
  expect(
    toPlainText(
      "# A *title*\n\nSome **bold** [link](https://a.example) and `code`\\\nnext & <b>.\n\n- one\n- [x] two\n  1. deep\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | *2* |\n",
    ),
  ).toBe("A title\n\nSome bold link and code\nnext & <b>.\n\n- one\n- [x] two\n  1. deep\n\nx := 1\n\na\tb\n1\t2");
});

test("what is searched has no signs of lists, and no line of two cells", () => {
  expect(
    toSearchedText("1. one\n2. two\n   - [x] deep\n\n---\n\n| a | b |\n|---|---|\n| 1 | *2* |\n").split(/\s*\n\s*/),
  ).toEqual(["one", "two", "deep", "a", "b", "1", "2", ""]);
  expect(toSearchedText("one\n*two*  \nthree").trim()).toBe("one two\nthree");
});

test("footnotes, sections and elements of HTML lose their marks", () => {
  expect(
    toPlainText(
      "==a== H<sub>2</sub>O[^n]\n\n<details>\n<summary>*More*</summary>\n\ninside\n\n</details>\n\n[^n]: The *note*.",
    ),
  ).toBe("a H2O[n]\n\nMore\n\ninside\n\n[n] The note.");
});

test("firstParagraph skips code and returns one line without marks", () => {
  expect(firstParagraph("```\ncode\n```\n\nThis *is*\nit.\n\nNot this.")).toBe("This is it.");
  expect(firstParagraph("")).toBe("");
});

test("formulas keep their stars and underscores; what is searched has no delimiters", () => {
  const text = "Let $a*b*c$ be.\n\n$$\nx_1 \\\\ y_1\n$$\n\nIt costs $5 or $6.";
  expect(toPlainText(text)).toBe("Let $a*b*c$ be.\n\n$$\nx_1 \\\\ y_1\n$$\n\nIt costs $5 or $6.");
  expect(toSearchedText(text).split(/\s*\n\s*/)).toEqual([
    "Let",
    "a*b*c",
    "be.",
    "x_1 \\\\ y_1",
    "It costs $5 or $6.",
    "",
  ]);
  expect(firstParagraph(text)).toBe("Let $a*b*c$ be.");
});
