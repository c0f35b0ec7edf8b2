import { expect, test } from "vitest";
import { languageDetector } from "./text-language";

const languageOf = (text: string, likely: readonly string[] = ["en-GB"]) => languageDetector(text, likely)(text);

test("the language of a text is recognized by its script", () => {
  expect(languageOf("潮は一日に二回満ちます。")).toBe("ja");
  expect(languageOf("潮汐每天两次。")).toBe("zh");
  expect(languageOf("밀물과 썰물은 하루에 두 번 있습니다.")).toBe("ko");
  expect(languageOf("يحدث المد مرتين في اليوم.")).toBe("ar");
  expect(languageOf("Приливы бывают два раза в день.")).toBe("ru");
});

test("the language of a Latin text is recognized by its frequent words", () => {
  expect(languageOf("Es gibt zwei Fluten am Tag, und der Mond ist nicht der einzige Grund.")).toBe("de");
  expect(languageOf("Il y a deux marées par jour, et la lune n'est pas la seule cause.")).toBe("fr");
  expect(languageOf("Hay dos mareas al día, y la luna no es la única causa para los mares.")).toBe("es");
  expect(languageOf("Er zijn twee getijden per dag, en de maan is niet het enige dat van belang is.")).toBe("nl");
  expect(languageOf("There are two tides a day.", ["de-AT", "en-GB"])).toBe("en-GB");
});

test("a text that does not show its language has that of the reader", () => {
  expect(languageOf("OK!", ["de-AT", "en"])).toBe("de-AT");
  expect(languageOf("12 + 30", ["ja", "fr"])).toBe("fr");
  expect(languageOf("OK!", ["ja"])).toBe("en");
});

test("each sentence of a text with several scripts has its own language", () => {
  const of = languageDetector("「潮」 means tide. これは名詞です。漢字一字。", ["en"]);
  expect(of("「潮」 means tide.")).toBe("en");
  expect(of("これは名詞です。")).toBe("ja");
  expect(of("漢字一字。")).toBe("ja");
});
