// The messages of the menu of a message. They are loaded with it: the English messages of the catalog are part of the first load.
import ar from "./ar/acting.json";
import en from "./en/acting.json";
import ja from "./ja/acting.json";

export type ActingMessageKey = keyof typeof en;

export const actingMessages: Readonly<Record<string, Readonly<Record<ActingMessageKey, string>>>> = { en, ar, ja };
