// Keeps what is put into a sentence, and may be written in the other direction, in an order of its own.

export type Values = Record<string, string | number | Date>;

const leftward = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const rightward = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** The values, those of the other direction between the signs that isolate them (U+2068, U+2069). */
export function isolated(values: Values | undefined, direction: "ltr" | "rtl"): Values | undefined {
  const other = direction === "ltr" ? leftward : rightward;
  return values && Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === "string" && other.test(value) ? `\u2068${value}\u2069` : value]));
}
