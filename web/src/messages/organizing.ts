// The messages about moving, archiving and deleting conversations. They are loaded with the parts that show them: the English messages
// of the catalog are part of the first load.
import ar from "./ar/organizing.json";
import en from "./en/organizing.json";
import ja from "./ja/organizing.json";

export type OrganizingMessageKey = keyof typeof en;

export const organizingMessages: Readonly<Record<string, Readonly<Record<OrganizingMessageKey, string>>>> = {
  en,
  ar,
  ja,
};
