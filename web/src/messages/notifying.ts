// The messages about notifications of answers. They are loaded with what shows them: the English messages of the catalog are part of
// the first load.
import ar from "./ar/notifying.json";
import en from "./en/notifying.json";
import ja from "./ja/notifying.json";

export const notifyingMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
