import { describe, expect, test } from "vitest";
import { IntlMessageFormat } from "intl-messageformat";
import { choose, english, languages } from "./words";

describe("words", () => {
  for (const [tag, language] of Object.entries(languages)) {
    test(`${tag} says everything that English says, with the same values`, async () => {
      const words: Record<string, string> = { ...(await language.load()) };
      expect(Object.keys(words).sort()).toEqual(Object.keys(english).sort());
      for (const [word, text] of Object.entries(words)) {
        expect(valuesIn(text), word).toEqual(valuesIn((english as Record<string, string>)[word]!));
        expect(text.trim(), word).not.toBe("");
      }
    });
  }

  test("a language is chosen by the account, then by the browser", () => {
    expect(choose("ja", ["ar"])).toBe("ja");
    expect(choose("tlh", ["ar-EG", "en"])).toBe("ar");
    expect(choose(undefined, ["fr", "de"])).toBe("en");
    expect(choose("", ["ja-JP"])).toBe("ja");
  });
});

/** The names of the values that a text takes, once each. */
function valuesIn(text: string): string[] {
  const names = new Set<string>();
  const walk = (elements: unknown): void => {
    for (const element of elements as { type: number; value?: string; options?: Record<string, { value: unknown }>; children?: unknown }[]) {
      if (element.type >= 1 && element.type <= 6 && element.value !== undefined) names.add(element.value);
      for (const option of Object.values(element.options ?? {})) walk(option.value);
      if (element.children !== undefined) walk(element.children);
    }
  };
  walk(new IntlMessageFormat(text, "en").getAst());
  return [...names].sort();
}
