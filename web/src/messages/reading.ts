// The messages about what was read of a file. They are loaded with the parts that show them: the English messages of the catalog are
// part of the first load.
import ar from "./ar/reading.json";
import en from "./en/reading.json";
import ja from "./ja/reading.json";

export type ReadingMessageKey = keyof typeof en;

export const readingMessages: Readonly<Record<string, Readonly<Record<ReadingMessageKey, string>>>> = { en, ar, ja };
