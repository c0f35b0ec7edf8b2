// The messages about shares. They are loaded with the parts that show them: the English messages of the catalog are part of the
// first load.
import ar from "./ar/sharing.json";
import en from "./en/sharing.json";
import ja from "./ja/sharing.json";
import type { MessageKey } from "./catalog";

/** A message about shares, or one of the app. */
export type SharingMessageKey = keyof typeof en | MessageKey;

export const sharingMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
