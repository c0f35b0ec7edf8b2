// The messages about research tasks. They are loaded with the parts that show them: the English messages of the catalog are
// part of the first load.
import ar from "./ar/research.json";
import en from "./en/research.json";
import ja from "./ja/research.json";

export type ResearchMessageKey = keyof typeof en;

export const researchMessages: Readonly<Record<string, Readonly<Record<ResearchMessageKey, string>>>> = { en, ar, ja };
