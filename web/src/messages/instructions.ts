// The messages about the instructions of the account. They are loaded with the settings that show them.
import ar from "./ar/instructions.json";
import en from "./en/instructions.json";
import ja from "./ja/instructions.json";

export const instructionMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
