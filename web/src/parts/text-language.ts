// The language of a text, for the voice that reads it: by its script and, for the Latin script, by its most frequent words.

const scripts: readonly [language: string, script: RegExp][] = [
  ["ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ["ko", /\p{Script=Hangul}/u],
  ["zh", /\p{Script=Han}/u],
  ["ar", /\p{Script=Arabic}/u],
  ["he", /\p{Script=Hebrew}/u],
  ["ru", /\p{Script=Cyrillic}/u],
  ["el", /\p{Script=Greek}/u],
  ["hi", /\p{Script=Devanagari}/u],
  ["th", /\p{Script=Thai}/u],
];

/** Words that are frequent in one language and rare in the others. */
const words: Readonly<Record<string, string>> = {
  en: "the and of is are was were with for that this from have has not you it be as at by which",
  de: "der die das und ist nicht ein eine einen mit von zu den dem auf für sich auch werden wird sind oder bei",
  fr: "le les des et est une dans pour pas que qui sur avec plus sont au aux ce cette vous nous ou",
  es: "el los las y una para con por que como más está son pero sus al lo se muy también",
  it: "il gli della che per una sono con più anche nel alla dei delle questo come essere non di",
  pt: "os das dos uma para com não que mais são como também pelo pela ao está você em isso",
  nl: "het een van niet voor met zijn dat op aan ook worden wordt deze bij naar maar als kan",
};
const languagesOf = new Map<string, string[]>();
for (const [language, list] of Object.entries(words))
  for (const word of list.split(" ")) languagesOf.set(word, [...(languagesOf.get(word) ?? []), language]);

/** How many words of a text are looked at. */
const maxWords = 1_000;

/**
 * Returns a function that returns the language of each sentence of a text as a tag. likely: the languages of the reader, for
 * texts that do not show theirs.
 */
export function languageDetector(text: string, likely: readonly string[]): (sentence: string) => string {
  const latin = latinLanguage(text, likely);
  const chinese = !scripts[0]![1].test(text); // the Japanese text may have a sentence without kana
  return (sentence) => {
    const letters = [...sentence.matchAll(/\p{L}/gu)].map(([letter]) => letter);
    const counts = scripts.map(([language, script]): [string, number] => [
      language,
      letters.filter((letter) => script.test(letter)).length,
    ]);
    const others = counts.reduce((sum, [, count]) => sum + count, 0);
    if (others * 2 < letters.length || others === 0) return latin;
    // Japanese is written with Han characters and kana.
    if (counts[0]![1] > 0) return "ja";
    const [language] = counts.reduce((most, one) => (one[1] > most[1] ? one : most));
    const found = language === "zh" && !chinese ? "ja" : language;
    return likely.find((tag) => baseOf(tag) === found) ?? found;
  };
}

const baseOf = (tag: string): string => tag.toLowerCase().split("-")[0]!;

function latinLanguage(text: string, likely: readonly string[]): string {
  const counts = new Map<string, number>();
  let seen = 0;
  for (const [word] of text.toLowerCase().matchAll(/\p{L}+/gu)) {
    if (++seen > maxWords) break;
    for (const language of languagesOf.get(word) ?? []) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  const known = likely.filter((tag) => baseOf(tag) in words);
  // Of languages with as many words, the reader's.
  const [best] = [...known.map(baseOf), ...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  return known.find((tag) => baseOf(tag) === best) ?? best ?? "en";
}
