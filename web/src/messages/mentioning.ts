// The messages of the lists that open while a message is typed. They are loaded when the first sign of such a list is typed.
import ar from "./ar/mentioning.json";
import en from "./en/mentioning.json";
import ja from "./ja/mentioning.json";

export const mentioningMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
