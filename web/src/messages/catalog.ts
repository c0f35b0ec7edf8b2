// The messages of the app, by language. English is in the main bundle; the others are loaded when they are chosen.
import type { Values } from "./bidi-isolation";
import english from "./en";

export type MessageKey = keyof typeof english;
/** The function that formats the messages of the app and those of a part that is loaded later, from useMessages. */
export type Translate<Key extends string> = (id: Key | MessageKey, values?: Values) => string;
export type Messages = Readonly<Record<MessageKey, string>>;

export interface Language {
  name: string;
  direction: "ltr" | "rtl";
  load(): Promise<Messages>;
}

/** The languages, each with its own name for itself. */
export const languages: Readonly<Record<string, Language>> = {
  en: { name: "English", direction: "ltr", load: () => Promise.resolve(english) },
  ar: { name: "العربية", direction: "rtl", load: () => import("./ar").then((m) => m.default) },
  ja: { name: "日本語", direction: "ltr", load: () => import("./ja").then((m) => m.default) },
};

/** Chooses a language: the account's, else the first supported one of the browser's, else English. */
export function chooseLanguage(wanted: string | undefined, offered: readonly string[] = navigator.languages): string {
  for (const tag of wanted !== undefined && wanted !== "" ? [wanted, ...offered] : offered) {
    const base = tag.toLowerCase().split("-")[0]!;
    if (base in languages) return base;
  }
  return "en";
}

export { english };
