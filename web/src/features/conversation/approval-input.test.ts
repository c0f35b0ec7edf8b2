import { describe, expect, test } from "vitest";
import { fieldsOf, piecesOf, readInput, readNumber, revealHidden } from "./approval-input";

describe("the input of a call that asks for approval", () => {
  test("invisible and reordering characters are shown; those that a script or an emoji needs are kept", () => {
    expect(revealHidden("pay\u202eecila\u200b to \u{e0041}bob\u0000")).toBe(
      "pay⟨U+202E⟩ecila⟨U+200B⟩ to ⟨U+E0041⟩bob⟨U+0000⟩",
    );
    expect(revealHidden("می‌خواهم\n\t👨‍👩‍👧 straße")).toBe("می‌خواهم\n\t👨‍👩‍👧 straße");
  });

  test("every occurrence of a marked part is marked, and the pieces are the whole text", () => {
    const text = "https://x.example/?q=anna@example.org&p=anna&again=anna@example.org";
    const pieces = piecesOf(text, ["anna", "anna@example.org", ""]);
    expect(pieces.map((piece) => piece.text).join("")).toBe(text);
    expect(pieces.filter(({ marked }) => marked).map((piece) => piece.text)).toEqual([
      "anna@example.org",
      "anna",
      "anna@example.org",
    ]);
    expect(piecesOf("nothing here", ["anna"])).toEqual([{ text: "nothing here", marked: false }]);
    expect(piecesOf("", ["anna"])).toEqual([]);
  });

  test("an input has fields only if all its values are simple", () => {
    expect(fieldsOf({ note: "a", count: 2, quiet: false })).toEqual([
      ["note", "a"],
      ["count", 2],
      ["quiet", false],
    ]);
    for (const input of [{}, null, [], "text", { to: ["a"] }, { to: null }]) expect(fieldsOf(input)).toBe(null);
  });

  test("only numbers and JSON objects are read", () => {
    expect([" 2.5", "-3", "1e3", "", " ", "2,5", "Infinity"].map(readNumber)).toEqual([
      2.5,
      -3,
      1000,
      null,
      null,
      null,
      null,
    ]);
    expect(readInput('{"note": "a"}')).toEqual({ note: "a" });
    for (const text of ["", "{", "[1]", "null", '"a"']) expect(readInput(text)).toBe(null);
  });
});
