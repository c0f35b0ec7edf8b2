import { describe, expect, test } from "vitest";
import { mentionAt } from "./mention";

/** The caret is at "|". */
const at = (text: string) => mentionAt(text.replace("|", ""), text.indexOf("|"), text.indexOf("|"), 160);

describe("the word that names a file", () => {
  test("it begins with @ at the beginning of a word and ends at the caret", () => {
    expect(at("@|")).toEqual({ start: 0, end: 1, query: "" });
    expect(at("see @tid|es")).toEqual({ start: 4, end: 8, query: "tid" });
    expect(at("first\n@moon.txt| and")).toEqual({ start: 6, end: 15, query: "moon.txt" });
    expect(at("(@a|")).toEqual({ start: 1, end: 3, query: "a" });
    expect(at("表を＠潮|")).toEqual({ start: 2, end: 4, query: "潮" });
  });

  test("an address, a handled word and a selection are not one", () => {
    for (const text of ["robin@tur|", "a.b@|", "see @tides |", "|@tides", "@@|", "x@y @z w|", ""])
      expect(at(text), text).toBeNull();
    expect(mentionAt("@tides", 1, 3, 160)).toBeNull();
  });

  test("the longest name is found, and a longer text is not", () => {
    expect(at(`x @${"n".repeat(160)}|`)).toMatchObject({ start: 2 });
    expect(at(`x @${"n".repeat(161)}|`)).toBeNull();
  });
});
