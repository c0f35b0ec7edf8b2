import { describe, expect, test } from "vitest";
import { correction, followsAfter, isAtEnd, roomBelow, wantsOlder } from "./scroll";

describe("following the end", () => {
  const end = { top: 1000, view: 500, whole: 1500 };

  test("the end reaches 48 pixels up", () => {
    expect(isAtEnd(end)).toBe(true);
    expect(isAtEnd({ ...end, top: 952 })).toBe(true);
    expect(isAtEnd({ ...end, top: 951 })).toBe(false);
    expect(isAtEnd({ top: 0, view: 500, whole: 300 })).toBe(true);
  });

  test("growth does not end it", () => expect(followsAfter(true, 1000, { ...end, whole: 1900 })).toBe(true));
  test("going up ends it", () => expect(followsAfter(true, 1000, { ...end, top: 900 })).toBe(false));
  test("a nudge within the end does not", () => expect(followsAfter(true, 1000, { ...end, top: 970 })).toBe(true));
  test("going down begins it only at the end", () => {
    expect(followsAfter(false, 300, { ...end, top: 600 })).toBe(false);
    expect(followsAfter(false, 300, { ...end, top: 980 })).toBe(true);
  });
  test("a reader in the middle is left there, however much comes", () => {
    let follows = false;
    for (let whole = 2000; whole < 9000; whole += 700) follows = followsAfter(follows, 400, { top: 400, view: 500, whole });
    expect(follows).toBe(false);
  });
});

test("what is looked at stays where it is", () => {
  expect(correction({ key: "a", offset: 20 }, 420)).toBe(400);
  expect(correction({ key: "a", offset: 20 }, 20.4)).toBe(0);
  expect(correction({ key: "a", offset: 20 }, null)).toBe(0);
  expect(correction(null, 20)).toBe(0);
});

test("a new question has room to stand at the top, which its answer uses up", () => {
  expect(roomBelow(600, 80)).toBe(520);
  expect(roomBelow(600, 400)).toBe(200);
  expect(roomBelow(600, 4000)).toBe(0);
});

test("older messages are asked for before the beginning is reached", () => {
  expect(wantsOlder({ top: 900, view: 500, whole: 9000 })).toBe(true);
  expect(wantsOlder({ top: 1001, view: 500, whole: 9000 })).toBe(false);
});
