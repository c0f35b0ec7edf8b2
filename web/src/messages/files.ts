// The messages about uploads and the files of the library. They are loaded with the parts that show them: the English messages of the
// catalog are part of the first load.
import ar from "./ar/files.json";
import en from "./en/files.json";
import ja from "./ja/files.json";

export type FileMessageKey = keyof typeof en;

export const fileMessages: Readonly<Record<string, Readonly<Record<FileMessageKey, string>>>> = { en, ar, ja };
