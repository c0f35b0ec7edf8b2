import { describe, expect, test } from "vitest";
import { fileAt, promptAt, type FindMention } from "./mention";

/** The caret is at "|". */
const at = (find: FindMention, text: string) => find(text.replace("|", ""), text.indexOf("|"), text.indexOf("|"));

describe("the word that names a file", () => {
  test("it begins with @ at the beginning of a word and ends at the caret", () => {
    expect(at(fileAt, "@|")).toEqual({ start: 0, end: 1, query: "" });
    expect(at(fileAt, "see @tid|es")).toEqual({ start: 4, end: 8, query: "tid" });
    expect(at(fileAt, "first\n@moon.txt| and")).toEqual({ start: 6, end: 15, query: "moon.txt" });
    expect(at(fileAt, "(@a|")).toEqual({ start: 1, end: 3, query: "a" });
    expect(at(fileAt, "表を＠潮|")).toEqual({ start: 2, end: 4, query: "潮" });
  });

  test("an address, a handled word and a selection are not one", () => {
    for (const text of ["robin@tur|", "a.b@|", "see @tides |", "|@tides", "@@|", "x@y @z w|", ""])
      expect(at(fileAt, text), text).toBeNull();
    expect(fileAt("@tides", 1, 3)).toBeNull();
  });

  test("the longest name is found, and a longer text is not", () => {
    expect(at(fileAt, `x @${"n".repeat(160)}|`)).toMatchObject({ start: 2 });
    expect(at(fileAt, `x @${"n".repeat(161)}|`)).toBeNull();
  });
});

describe("the word that names a prompt", () => {
  test("it begins with / at the beginning of a line and ends at the caret", () => {
    expect(at(promptAt, "/|")).toEqual({ start: 0, end: 1, query: "" });
    expect(at(promptAt, "/code-re|view")).toEqual({ start: 0, end: 8, query: "code-re" });
    expect(at(promptAt, "first\n/sum|\nlast")).toEqual({ start: 6, end: 10, query: "sum" });
    expect(at(promptAt, "  /a|")).toEqual({ start: 2, end: 4, query: "a" });
    expect(at(promptAt, "／要約|")).toEqual({ start: 0, end: 3, query: "要約" });
    expect(at(promptAt, "/सारांश|")).toMatchObject({ start: 0 });
  });

  test("a path, a fraction, an address, a comment and a selection are not one", () => {
    for (const text of ["/usr/|", "/usr/bin|", "1/2|", "either /or|", "https:/|", "//|", "/* x|", "/a b|", "|/a", ""])
      expect(at(promptAt, text), text).toBeNull();
    expect(promptAt("/tides", 1, 3)).toBeNull();
  });

  test("the longest name is found, and a longer text is not", () => {
    expect(at(promptAt, `/${"n".repeat(64)}|`)).toMatchObject({ start: 0 });
    expect(at(promptAt, `/${"n".repeat(65)}|`)).toBeNull();
  });
});
