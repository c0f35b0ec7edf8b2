// The messages about consents and the location. They are loaded with the parts that show them: the English messages of the catalog
// are part of the first load.
import ar from "./ar/consents.json";
import en from "./en/consents.json";
import ja from "./ja/consents.json";

export type ConsentMessageKey = keyof typeof en;

export const consentMessages: Readonly<Record<string, Readonly<Record<ConsentMessageKey, string>>>> = { en, ar, ja };
