// The messages of most parts of the settings. They are loaded with these parts: the English messages of the catalog are part of the
// first load.
import ar from "./ar/settings.json";
import type { Values } from "./bidi-isolation";
import en from "./en/settings.json";
import ja from "./ja/settings.json";
import { signingInMessages } from "./signing-in";

export type SettingsMessageKey = keyof typeof en | keyof (typeof signingInMessages)[string];

/** The function that formats these messages, from useMessages. */
export type SettingsText = (key: SettingsMessageKey, values?: Values) => string;

export const settingsMessages: Readonly<Record<string, Readonly<Record<SettingsMessageKey, string>>>> = {
  en: { ...en, ...signingInMessages["en"]! },
  ar: { ...ar, ...signingInMessages["ar"]! },
  ja: { ...ja, ...signingInMessages["ja"]! },
};
