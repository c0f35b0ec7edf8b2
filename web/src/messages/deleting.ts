// The messages of the dialog that deletes a project. They are loaded with it: the English messages of the catalog are part of the first
// load.
import ar from "./ar/deleting.json";
import en from "./en/deleting.json";
import ja from "./ja/deleting.json";

export const deletingMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
