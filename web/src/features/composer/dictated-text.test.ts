import { expect, test } from "vitest";
import { DictatedText, withSpeech } from "./dictated-text";

test("speech is separated from the text before it, except where no space is written", () => {
  expect(withSpeech("", " Two tides ")).toBe("Two tides");
  expect(withSpeech("About:", "two tides")).toBe("About: two tides");
  expect(withSpeech("About:\n", "two tides")).toBe("About:\ntwo tides");
  expect(withSpeech("潮は。", "なぜ")).toBe("潮は。なぜ");
  expect(withSpeech("About:", "  ")).toBe("About:");
});

test("an interim result is replaced by the next one", () => {
  const text = new DictatedText("Why");
  expect(text.with("Why", ["are"])).toBe("Why are");
  expect(text.with("Why are", ["are there", " two"])).toBe("Why are there two");
  expect(text.with("Why are there two", ["are there", "two tides"])).toBe("Why are there two tides");
});

test("what the user changes meanwhile stays, and nothing is added twice", () => {
  const text = new DictatedText("");
  expect(text.with("", ["two", "tides"])).toBe("two tides");
  expect(text.with("Two tides!", ["two", "tides", "a day"])).toBe("Two tides! a day");
  expect(text.with("Two tides! a day", ["two", "tides", "a day", "or one"])).toBe("Two tides! a day or one");
  expect(text.with("", ["two", "tides", "a day", "or one", "and"])).toBe("and");
});
