// The messages of the dialog with the branches. They are loaded with it: the English messages of the catalog are part of the first load.
import ar from "./ar/branching.json";
import en from "./en/branching.json";
import ja from "./ja/branching.json";

export type BranchingMessageKey = keyof typeof en;

export const branchingMessages: Readonly<Record<string, Readonly<Record<BranchingMessageKey, string>>>> = {
  en,
  ar,
  ja,
};
