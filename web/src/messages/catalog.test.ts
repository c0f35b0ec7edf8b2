import { describe, expect, test } from "vitest";
import { IntlMessageFormat } from "intl-messageformat";
import { chooseLanguage, english, languages } from "./catalog";

describe("messages of the app", () => {
  for (const [tag, language] of Object.entries(languages)) {
    test(`${tag} has every message that English has, with the same values`, async () => {
      const messages: Record<string, string> = { ...(await language.load()) };
      expect(Object.keys(messages).sort()).toEqual(Object.keys(english).sort());
      for (const [key, text] of Object.entries(messages)) {
        expect(valuesIn(text), key).toEqual(valuesIn((english as Record<string, string>)[key]!));
        expect(text.trim(), key).not.toBe("");
      }
    });
  }

  test("a language is chosen by the account, then by the browser", () => {
    expect(chooseLanguage("ja", ["ar"])).toBe("ja");
    expect(chooseLanguage("tlh", ["ar-EG", "en"])).toBe("ar");
    expect(chooseLanguage(undefined, ["fr", "de"])).toBe("en");
    expect(chooseLanguage("", ["ja-JP"])).toBe("ja");
  });
});

/** The names of the values in a message, once each. */
function valuesIn(text: string): string[] {
  const names = new Set<string>();
  const walk = (elements: unknown): void => {
    for (const element of elements as {
      type: number;
      value?: string;
      options?: Record<string, { value: unknown }>;
      children?: unknown;
    }[]) {
      if (element.type >= 1 && element.type <= 6 && element.value !== undefined) names.add(element.value);
      for (const option of Object.values(element.options ?? {})) walk(option.value);
      if (element.children !== undefined) walk(element.children);
    }
  };
  walk(new IntlMessageFormat(text, "en").getAst());
  return [...names].sort();
}
