// The messages of the pages for signing in and of the links in mails. They are loaded with the parts that show them: the English messages of the catalog are part of the
// first load.
import ar from "./ar/signing-in.json";
import en from "./en/signing-in.json";
import ja from "./ja/signing-in.json";
import type { MessageKey } from "./catalog";

/** A message about signing in, or one of the app. */
export type SigningInMessageKey = keyof typeof en | MessageKey;

export const signingInMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
