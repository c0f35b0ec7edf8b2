// The messages about prompts. They are loaded with the lists and the dialog that show them.
import ar from "./ar/prompts.json";
import en from "./en/prompts.json";
import ja from "./ja/prompts.json";

export type PromptMessageKey = keyof typeof en;

export const promptMessages: Readonly<Record<string, Readonly<Record<PromptMessageKey, string>>>> = { en, ar, ja };
