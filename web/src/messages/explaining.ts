// The messages of the dialog that explains a rating. They are loaded with it.
import ar from "./ar/explaining.json";
import en from "./en/explaining.json";
import ja from "./ja/explaining.json";

export type ExplainingMessageKey = keyof typeof en;

export const explainingMessages: Readonly<Record<string, Readonly<Record<ExplainingMessageKey, string>>>> = {
  en,
  ar,
  ja,
};
