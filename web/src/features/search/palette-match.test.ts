import { expect, test } from "vitest";
import { byConversation, exactFirst, matcher } from "./palette-match";

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

test("exact names come first", () => {
  const names = ["High tides", "Tides of May", "tides", "Low Tides", "Tídes"];
  expect(exactFirst(names, " Tides", (name) => name)).toEqual([
    "tides",
    "Tídes",
    "High tides",
    "Tides of May",
    "Low Tides",
  ]);
});

test("a conversation shows its first results, and how many others were found", () => {
  const found = ["a1", "b1", "a2", "a3", "a4", "b2"].map((id) => ({ id, conversation_id: id[0]! }));
  const shown = byConversation(found, 3).map((group) => [group.shown.map(({ id }) => id).join(), group.others]);
  expect(shown).toEqual([
    ["a1,a2,a3", 1],
    ["b1,b2", 0],
  ]);
});
