// The messages about citations. They are loaded with their cards: the English messages of the catalog are part of the first load.
import ar from "./ar/citing.json";
import en from "./en/citing.json";
import ja from "./ja/citing.json";

export type CitingMessageKey = keyof typeof en;

export const citingMessages: Readonly<Record<string, Readonly<Record<CitingMessageKey, string>>>> = {
  en,
  ar,
  ja,
};
