import { describe, expect, test } from "vitest";
import { fold, indexOf, positionsOf } from "./find";

/** Returns the found pieces of the original text. */
function found(query: string, text: string): string[] {
  const folded = fold(text);
  const wanted = fold(query).text;
  return positionsOf(wanted, folded.text).map((at) => text.slice(folded.index[at], folded.index[at + wanted.length]));
}

describe("finding text", () => {
  test("case and diacritics are ignored, and the original text is found", () => {
    expect(found("uber", "Über uns, über alles")).toEqual(["Über", "über"]);
    expect(found("résumé", "Resume")).toEqual(["Resume"]);
    expect(found("e", "e\u0301e")).toEqual(["e\u0301", "e"]);
    expect(found("straße", "STRASSE Straße")).toEqual(["Straße"]);
  });

  test("Arabic is found with and without vowels and hamza", () => {
    expect(found("العربية", "اللغة العَرَبِيَّة")).toEqual(["العَرَبِيَّة"]);
    expect(found("احمد", "أحمد")).toEqual(["أحمد"]);
  });

  test("Japanese, Chinese and Korean are found, and voiced kana differ from others", () => {
    expect(found("東京", "東京タワーと東京駅")).toEqual(["東京", "東京"]);
    expect(found("か", "がか")).toEqual(["か"]);
    expect(found("カ", "カ")).toEqual(["カ"]);
    expect(found("한글", "한글 한글")).toHaveLength(2);
  });

  test("any white space matches a space, but not the end of a line", () => {
    expect(found("a b", "a \u00a0 b a\tb a\nb")).toEqual(["a \u00a0 b", "a\tb"]);
  });

  test("the current match stays while the list changes; otherwise the next one from the view is taken", () => {
    const order = new Map([
      ["a", 0],
      ["b", 1],
      ["c", 2],
    ]);
    const list = [
      { key: "a", nth: 0 },
      { key: "c", nth: 0 },
      { key: "c", nth: 1 },
    ];
    expect(indexOf({ key: "c", nth: 1 }, list, order, 0)).toBe(2);
    expect(indexOf({ key: "b", nth: 0 }, list, order, 1)).toBe(1);
    expect(indexOf(null, list, order, 3)).toBe(2);
    expect(indexOf(null, [], order, 0)).toBe(-1);
  });
});
