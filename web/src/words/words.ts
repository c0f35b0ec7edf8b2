// The words of the app, by language. English is in the first load; the others come when they are chosen.
import english from "./en";

export type Word = keyof typeof english;
export type Words = Readonly<Record<Word, string>>;

export interface Language {
  name: string;
  direction: "ltr" | "rtl";
  load(): Promise<Words>;
}

/** The languages, named in themselves. */
export const languages: Readonly<Record<string, Language>> = {
  en: { name: "English", direction: "ltr", load: () => Promise.resolve(english) },
  ar: { name: "العربية", direction: "rtl", load: () => import("./ar").then((m) => m.default) },
  ja: { name: "日本語", direction: "ltr", load: () => import("./ja").then((m) => m.default) },
};

/** The language to speak: the account's, else the first of the browser's that there is, else English. */
export function choose(wanted: string | undefined, offered: readonly string[] = navigator.languages): string {
  for (const tag of wanted !== undefined && wanted !== "" ? [wanted, ...offered] : offered) {
    const base = tag.toLowerCase().split("-")[0]!;
    if (base in languages) return base;
  }
  return "en";
}

export { english };
