// The messages of the find bar. They are loaded with it: the English messages of the catalog are part of the first load.
import ar from "./ar/finding.json";
import en from "./en/finding.json";
import ja from "./ja/finding.json";

export type FindingMessageKey = keyof typeof en;

export const findingMessages: Readonly<Record<string, Readonly<Record<FindingMessageKey, string>>>> = { en, ar, ja };
