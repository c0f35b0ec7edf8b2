import { describe, expect, test } from "vitest";
import { fold, MatchList, positionsOf } from "./find";

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
    expect(found("straße", "STRASSE Straße")).toEqual(["STRASSE", "Straße"]);
    expect(found("ΟΔΟΣ", "οδός")).toEqual(["οδός"]);
    expect(found("İ", "iI")).toEqual(["i", "I"]);
  });

  test("quotation marks and hyphens are found as they are typed, and invisible characters are ignored", () => {
    expect(found("don't", "don\u2019t")).toEqual(["don\u2019t"]);
    expect(found('"so"', "\u201cso\u201d")).toEqual(["\u201cso\u201d"]);
    expect(found("well-known", "well\u2011known")).toEqual(["well\u2011known"]);
    expect(found("softly", "soft\u00adly s\u200boftly")).toEqual(["soft\u00adly", "s\u200boftly"]);
    expect(found("❤", "❤\ufe0f")).toEqual(["❤\ufe0f"]);
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
    const list = new MatchList([
      { key: "a", count: 1 },
      { key: "c", count: 2 },
    ]);
    expect(list.length).toBe(3);
    expect([-1, 0, 1, 2, 3].map((at) => list.at(at))).toEqual([
      null,
      { key: "a", nth: 0 },
      { key: "c", nth: 0 },
      { key: "c", nth: 1 },
      null,
    ]);
    expect(list.indexOf({ key: "c", nth: 1 }, order, 0)).toBe(2);
    expect(list.indexOf({ key: "c", nth: 2 }, order, 0)).toBe(0);
    expect(list.indexOf({ key: "b", nth: 0 }, order, 1)).toBe(1);
    expect(list.indexOf(null, order, 3)).toBe(2);
    expect(new MatchList([]).indexOf(null, order, 0)).toBe(-1);
  });
});
