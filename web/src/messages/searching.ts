// The messages of the palette about searches. They are loaded with it: the English messages of the catalog are part of the first load.
import ar from "./ar/searching.json";
import en from "./en/searching.json";
import ja from "./ja/searching.json";

export type SearchingMessageKey = keyof typeof en;

export const searchingMessages: Readonly<Record<string, Readonly<Record<SearchingMessageKey, string>>>> = {
  en,
  ar,
  ja,
};
