import { describe, expect, test } from "vitest";
import { actingMessages } from "./acting";
import { approvingMessages } from "./approving";
import { artifactMessages } from "./artifact-panel";
import { branchingMessages } from "./branching";
import { chooseLanguage, english, languages } from "./catalog";
import { citingMessages } from "./citing";
import { consentMessages } from "./consents";
import { explainingMessages } from "./explaining";
import { fileMessages } from "./files";
import { findingMessages } from "./finding";
import { instructionMessages } from "./instructions";
import { mentioningMessages } from "./mentioning";
import { notifyingMessages } from "./notifying";
import { promptMessages } from "./prompts";
import { organizingMessages } from "./organizing";
import { projectMessages } from "./projects";
import { readingMessages } from "./reading";
import { researchMessages } from "./research";
import { searchingMessages } from "./searching";
import { settingsMessages } from "./settings";
import { sharingMessages } from "./sharing";
import { shortcutMessages } from "./shortcuts";
import { signingInMessages } from "./signing-in";
import { writingMessages } from "./writing";

describe("messages of the app", () => {
  for (const [tag, language] of Object.entries(languages)) {
    test(`${tag} has every message that English has, with the same values`, async () => {
      const messages: Record<string, unknown> = {
        ...(await language.load()),
        ...actingMessages[tag],
        ...approvingMessages[tag],
        ...artifactMessages[tag],
        ...branchingMessages[tag],
        ...citingMessages[tag],
        ...consentMessages[tag],
        ...explainingMessages[tag],
        ...fileMessages[tag],
        ...findingMessages[tag],
        ...instructionMessages[tag],
        ...mentioningMessages[tag],
        ...notifyingMessages[tag],
        ...promptMessages[tag],
        ...organizingMessages[tag],
        ...projectMessages[tag],
        ...researchMessages[tag],
        ...readingMessages[tag],
        ...searchingMessages[tag],
        ...settingsMessages[tag],
        ...sharingMessages[tag],
        ...shortcutMessages[tag],
        ...signingInMessages[tag],
        ...writingMessages[tag],
      };
      const inEnglish: Record<string, unknown> = {
        ...english,
        ...actingMessages["en"],
        ...approvingMessages["en"],
        ...artifactMessages["en"],
        ...branchingMessages["en"],
        ...citingMessages["en"],
        ...consentMessages["en"],
        ...explainingMessages["en"],
        ...fileMessages["en"],
        ...findingMessages["en"],
        ...instructionMessages["en"],
        ...mentioningMessages["en"],
        ...notifyingMessages["en"],
        ...promptMessages["en"],
        ...organizingMessages["en"],
        ...projectMessages["en"],
        ...researchMessages["en"],
        ...readingMessages["en"],
        ...searchingMessages["en"],
        ...settingsMessages["en"],
        ...sharingMessages["en"],
        ...shortcutMessages["en"],
        ...signingInMessages["en"],
        ...writingMessages["en"],
      };
      expect(Object.keys(messages).sort()).toEqual(Object.keys(inEnglish).sort());
      for (const [key, text] of Object.entries(messages)) {
        expect(valuesIn(text), key).toEqual(valuesIn(inEnglish[key]));
        expect(typeof text === "string" && text.includes("{"), `${key} is not parsed`).toBe(false);
        expect(JSON.stringify(text).trim(), key).not.toMatch(/^(?:"\s*"|\[\])$/);
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

/** Returns the names of the values in a message, once each. The build parses the messages with values. */
function valuesIn(message: unknown): string[] {
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
  if (typeof message !== "string") walk(message);
  return [...names].sort();
}
