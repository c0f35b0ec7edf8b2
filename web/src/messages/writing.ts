// The messages of the parts of the composer that are loaded later: the English messages of the catalog are part of the first load.
import ar from "./ar/writing.json";
import en from "./en/writing.json";
import ja from "./ja/writing.json";

export type WritingMessageKey = keyof typeof en;

export const writingMessages: Readonly<Record<string, Readonly<Record<WritingMessageKey, string>>>> = { en, ar, ja };
