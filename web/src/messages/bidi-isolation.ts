// Isolates values that are written in the opposite direction, so that they do not reorder the message around them.

export type Values = Record<string, string | number | Date>;

const rightToLeftScripts = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const leftToRightScripts =
  /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** Returns the values, with those of the opposite direction between the isolate characters U+2068 and U+2069. */
export function isolateValues(values: Values | undefined, direction: "ltr" | "rtl"): Values | undefined {
  const other = direction === "ltr" ? rightToLeftScripts : leftToRightScripts;
  return (
    values &&
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        typeof value === "string" && other.test(value) ? `\u2068${value}\u2069` : value,
      ]),
    )
  );
}
