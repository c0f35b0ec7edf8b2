import { describe, expect, test } from "vitest";
import { fillIn, variablesOf } from "./prompt-variables";

const names = (text: string) => variablesOf(text).map(({ name }) => name);

describe("the variables of a prompt", () => {
  test("they have names and defaults", () => {
    expect(variablesOf("Translate {{ text }} into {{language: French }}, {{my tone_2:}}.")).toEqual([
      { name: "text", proposed: "" },
      { name: "language", proposed: "French" },
      { name: "my tone_2", proposed: "" },
    ]);
    expect(names("{{要約}} और {{नाम}} و{{الاسم}}")).toEqual(["要約", "नाम", "الاسم"]);
    expect(variablesOf("{{at:12:30}}")).toEqual([{ name: "at", proposed: "12:30" }]);
  });

  test("a repeated name counts once, with its first default", () => {
    expect(variablesOf("{{a}} {{b:2}} {{a:1}} {{a:3}} {{ b }}")).toEqual([
      { name: "a", proposed: "1" },
      { name: "b", proposed: "2" },
    ]);
  });

  test("code stays text", () => {
    const code =
      "{{}} {{ }} {{#if a}} {{/if}} {{> part}} {{{raw}}} {{a.b}} {{a | b}} {{1}} {{-x-}} { {a} } {{a\nb}} {{{{a}}}} {a} {{a}";
    expect(names(code)).toEqual([]);
    expect(fillIn(code, { a: "1", raw: "2", x: "3" })).toBe(code);
  });

  test("the inner one of two is a variable", () => {
    expect(names("{{a {{b}} c}}")).toEqual(["b"]);
    expect(fillIn("{{a {{b}} c}}", { a: "1", b: "2" })).toBe("{{a 2 c}}");
  });

  test("what is known is not asked for", () => {
    expect(variablesOf("{{date}} {{a}}", { date: "today" })).toEqual([{ name: "a", proposed: "" }]);
    expect(fillIn("{{date}} {{a}}", { date: "today", a: "x" })).toBe("today x");
  });

  test("values are inserted as they are", () => {
    expect(fillIn("{{a}}, {{ a :x}}, {{b}}", { a: "$& {{b}} $1", b: "" })).toBe("$& {{b}} $1, $& {{b}} $1, ");
    expect(fillIn("{{toString}} {{constructor}}", {})).toBe("{{toString}} {{constructor}}");
  });

  test("a long text is read in one pass", () => {
    expect(names("{{".repeat(8_000))).toEqual([]);
    expect(names(`{{a${" ".repeat(16_000)}`)).toEqual([]);
  });
});
