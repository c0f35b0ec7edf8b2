// The messages of approvals. They are loaded with them: the English messages of the catalog are part of the first load.
import ar from "./ar/approving.json";
import en from "./en/approving.json";
import ja from "./ja/approving.json";

export type ApprovingMessageKey = keyof typeof en;

export const approvingMessages: Readonly<Record<string, Readonly<Record<ApprovingMessageKey, string>>>> = {
  en,
  ar,
  ja,
};
