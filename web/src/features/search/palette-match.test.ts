import { expect, test } from "vitest";
import { matcher } from "./palette-match";

test("every typed word has to be the beginning of a word", () => {
  expect(matcher("kill")("Hello there, Lisa")).toBe(false);
  expect(matcher("kill")("Skills")).toBe(false);
  expect(matcher("hel LI")("Hello there, Lisa")).toBe(true);
  expect(matcher("hello x")("Hello there, Lisa")).toBe(false);
  expect(matcher("c++ (an")("C++ (an introduction)")).toBe(true);
  expect(matcher("end")("front-end work")).toBe(true);
  expect(matcher("  ")("anything")).toBe(true);
});

test("case and accents do not matter, and scripts without spaces match anywhere", () => {
  expect(matcher("cafe uber")("Über das CAFÉ")).toBe(true);
  expect(matcher("Ångström")("angstrom")).toBe(true);
  expect(matcher("天気")("東京の天気予報")).toBe(true);
  expect(matcher("か")("がくせい")).toBe(false);
  expect(matcher("مدرسة")("المُدَرِّسة مَدْرَسة")).toBe(true);
});
