import { describe, expect, test } from "vitest";
import { random } from "../turn/turn.fake";
import { splitPlaceholders, splitMath, extractFormulas, restoreSource } from "./math";

const formulasIn = (text: string) =>
  splitMath(text).flatMap((piece) => ("text" in piece ? [] : [`${piece.display ? "D" : "I"}:${piece.tex}`]));

describe("formulas in a text", () => {
  test.each([
    ["Let $x_1*y_1$ and $z$.", ["I:x_1*y_1", "I:z"]],
    ["$$a\n+ b$$", ["D:a\n+ b"]],
    ["so \\(a\\) and \\[b\\]", ["I:a", "D:b"]],
    ["It costs $5 and $10.", []],
    ["from $5-$10 to $20", []],
    ["US$ 5 or 5$ each", []],
    ["a \\$b$ c$", []],
    ["`$a$` and ``x ` $b$`` and $c$", ["I:c"]],
    ["```sh\necho $a$\n```\n$b$", ["I:b"]],
    ["- ```sh\n  echo $a$\n  ```\n- $b$", ["I:b"]],
    ["```sh\necho $a$", []],
    ["$a\n\nb$", []],
    ["$$a\n\nb$$", []],
    ["| $|x|$ |", ["I:|x|"]],
    ["$\\$5$", ["I:\\$5"]],
    ["$ a $", []],
    ["$$$$", []],
    ["half $x", []],
    ["half \\(x", []],
    ["`half $x$", ["I:x"]],
  ])("%j", (text, formulas) => expect(formulasIn(text)).toEqual(formulas));

  test("the pieces joined give the text, and so do placeholders replaced by their formulas", () => {
    const signs = [
      "$",
      "$$",
      "\\(",
      "\\)",
      "\\[",
      "\\]",
      "`",
      "```\n",
      "\n",
      "\n\n",
      "a",
      "1",
      " ",
      "\\",
      "x_1",
      "~~~",
      "> ",
      "- ",
    ];
    for (let seed = 1; seed <= 3000; seed++) {
      const next = random(seed);
      const text = Array.from({ length: next(30) }, () => signs[next(signs.length)]!).join("");
      expect(
        splitMath(text)
          .map((piece) => ("text" in piece ? piece.text : piece.raw))
          .join(""),
        `seed ${seed}`,
      ).toBe(text);
      const { text: taken, formulas } = extractFormulas(text);
      expect(restoreSource(taken, formulas), `seed ${seed}`).toBe(text);
    }
  });

  test("formulas are put back at their positions", () => {
    const { text, formulas } = extractFormulas("a $x$ b $$y$$");
    expect(splitPlaceholders(text, formulas)).toMatchObject([
      { text: "a " },
      { tex: "x", display: false },
      { text: " b " },
      { tex: "y", display: true },
    ]);
  });

  test("a text that contains placeholder characters is unchanged", () => {
    expect(extractFormulas("\uE0000\uE001 $x$").formulas).toEqual([]);
  });
});

test("a formula has at most 4,000 characters, and its end is not looked for after them", () => {
  for (const [length, found] of [
    [3_998, true],
    [3_999, false],
  ] as const) {
    const [first] = splitMath(`\\(${"x".repeat(length)}\\) and more`);
    expect("tex" in first!).toBe(found);
  }
});
