// The messages of the list of shortcuts. They are loaded with it: the English messages of the catalog are part of the first load.
import ar from "./ar/shortcuts.json";
import en from "./en/shortcuts.json";
import ja from "./ja/shortcuts.json";

export type ShortcutMessageKey = keyof typeof en;

export const shortcutMessages: Readonly<Record<string, Readonly<Record<ShortcutMessageKey, string>>>> = { en, ar, ja };
