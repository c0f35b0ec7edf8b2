import { describe, expect, test } from "vitest";
import { random } from "../turn/turn.fake";
import { updateBlocks, headingLevels, withoutPartialFence, type Blocks } from "./blocks";

const pieces = [
  "# Title\n",
  "## Part\n",
  "Some *words* here ",
  "and more.\n",
  "\n",
  "\n\n",
  "- one\n",
  "- two\n",
  "  - inner\n",
  "1. first\n",
  "2. second\n",
  "10) tenth\n",
  "```go\n",
  "```",
  "~~~\n",
  "func main() {}\n",
  "    indented\n",
  "> quote\n",
  "> > deep\n",
  "| a | b |\n",
  "|---|:-:|\n",
  "| 1 | $x|y$ |\n",
  "---\n",
  "===\n",
  "$$\n",
  "a\n+ b\n",
  "$$",
  "\\[\n",
  "\\]\n",
  "[ref]: https://a.example\n",
  "[see][ref] ",
  "<div>\n",
  "</div>\n",
  "<!-- note ",
  "-->\n",
  "`code` ",
  "**",
  "\t",
  " ",
  "\\",
  "* * *\n",
  "- [ ] task\n",
  "海は広い。\n",
  "مرحبا\n",
  "\r\n",
  "+ c\n",
  "[^1]: note\n",
  "[^1] ",
  "<details>\n",
  "</details>\n",
  "5",
  ".",
  "*",
];

function randomText(seed: number): string {
  const next = random(seed);
  let text = "";
  for (let piece = 0; piece < 2 + next(24); piece++) text += pieces[next(pieces.length)]!;
  return text;
}

describe("blocks of Markdown", () => {
  test("the final blocks do not depend on how the text was split into pieces", () => {
    for (let seed = 1; seed <= 600; seed++) {
      const text = randomText(seed);
      const next = random(seed + 100_000);
      let grown: Blocks | null = null;
      for (let at = 0; at < text.length; at += 1 + next(seed % 2 === 0 ? 1 : 12))
        grown = updateBlocks(grown, text.slice(0, at));
      grown = updateBlocks(grown, text);
      expect(grown.list, `seed ${seed}: ${JSON.stringify(text)}`).toEqual(updateBlocks(null, text).list);
    }
  });

  test("the blocks joined give the whole text", () => {
    for (let seed = 1; seed <= 500; seed++) {
      const text = randomText(seed).replace(/\r\n?/g, "\n");
      const blocks = updateBlocks(null, text).list;
      if (blocks.length > 0) expect(blocks.map((block) => block.raw).join(""), `seed ${seed}`).toBe(text);
    }
  });

  test("unchanged blocks stay the same objects while text is added", () => {
    const before = updateBlocks(null, "one\n\ntwo\n\nthree\n\nfour");
    const after = updateBlocks(before, "one\n\ntwo\n\nthree\n\nfour and a half");
    expect(after.list.slice(0, 3).every((block, at) => block === before.list[at])).toBe(true);
    expect(after.list[3]!.raw).toBe("four and a half");
  });

  test("a text that does not continue the previous one is parsed from the start", () => {
    const before = updateBlocks(null, "one\n\ntwo\n\nthree\n\nfour");
    expect(updateBlocks(before, "# other").list.map((block) => block.raw)).toEqual(["# other"]);
  });

  test("a code block has the language of its fence and reports whether the fence is closed", () => {
    expect(updateBlocks(null, "```go title\nx").list).toMatchObject([
      { kind: "code", language: "go", text: "x", closed: false },
    ]);
    expect(updateBlocks(null, "```go\nx\n```").list).toMatchObject([
      { kind: "code", language: "go", text: "x", closed: true },
    ]);
    expect(updateBlocks(null, "````md\n```\nx\n```").list).toMatchObject([{ kind: "code", closed: false }]);
    expect(withoutPartialFence("a\n``")).toBe("a");
    expect(withoutPartialFence("a ``")).toBe("a ``");
  });

  test("a formula of several lines is one block, whatever its lines look like", () => {
    expect(updateBlocks(null, "So:\n$$\na\n+ b\n= c\n$$\nthen").list.map((block) => block.kind)).toEqual([
      "markdown",
      "math",
      "markdown",
    ]);
    expect(updateBlocks(null, "$$\na\n\nb").list.map((block) => block.kind)).toEqual(["markdown", "markdown"]);
  });

  test("heading levels are never skipped", () => {
    const levels = (text: string) => headingLevels(updateBlocks(null, text).list, 3);
    expect(levels("## a\n#### b\ntext\n## c\n# d\n")).toEqual([3, 4, 0, 3, 3]);
    expect(levels("# a\n## b\n### c\n#### d\n##### e\n")).toEqual([3, 4, 5, 6, 6]);
  });
});
