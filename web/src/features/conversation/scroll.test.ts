import { describe, expect, test } from "vitest";
import { correction, followsAfter, isAtEnd, spacerHeight, shouldLoadOlder } from "./scroll";

describe("following the end", () => {
  const end = { top: 1000, viewHeight: 500, contentHeight: 1500 };

  test("positions within 48 pixels of the end count as the end", () => {
    expect(isAtEnd(end)).toBe(true);
    expect(isAtEnd({ ...end, top: 952 })).toBe(true);
    expect(isAtEnd({ ...end, top: 951 })).toBe(false);
    expect(isAtEnd({ top: 0, viewHeight: 500, contentHeight: 300 })).toBe(true);
  });

  test("growth of the content does not stop following", () =>
    expect(followsAfter(true, 1000, { ...end, contentHeight: 1900 })).toBe(true));
  test("scrolling up stops following", () => expect(followsAfter(true, 1000, { ...end, top: 900 })).toBe(false));
  test("scrolling up by less than 48 pixels does not stop following", () =>
    expect(followsAfter(true, 1000, { ...end, top: 970 })).toBe(true));
  test("scrolling down starts following only at the end", () => {
    expect(followsAfter(false, 300, { ...end, top: 600 })).toBe(false);
    expect(followsAfter(false, 300, { ...end, top: 980 })).toBe(true);
  });
  test("a reader in the middle is not moved, however much the content grows", () => {
    let follows = false;
    for (let whole = 2000; whole < 9000; whole += 700)
      follows = followsAfter(follows, 400, { top: 400, viewHeight: 500, contentHeight: whole });
    expect(follows).toBe(false);
  });
});

test("the correction returns an anchor to its offset", () => {
  expect(correction({ key: "a", offset: 20 }, 420)).toBe(400);
  expect(correction({ key: "a", offset: 20 }, 20.4)).toBe(0);
  expect(correction({ key: "a", offset: 20 }, null)).toBe(0);
  expect(correction(null, 20)).toBe(0);
});

test("the space below lets a new user message be at the top, and its answer uses the space up", () => {
  expect(spacerHeight(600, 80)).toBe(520);
  expect(spacerHeight(600, 400)).toBe(200);
  expect(spacerHeight(600, 4000)).toBe(0);
});

test("older messages are requested before the top is reached", () => {
  expect(shouldLoadOlder({ top: 900, viewHeight: 500, contentHeight: 9000 })).toBe(true);
  expect(shouldLoadOlder({ top: 1001, viewHeight: 500, contentHeight: 9000 })).toBe(false);
});
