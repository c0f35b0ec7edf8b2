import { expect, test } from "vitest";
import { isUsable, readAmount } from "./budget";

test("amounts are read with separators and digits of the languages of the app; time is in minutes", () => {
  expect(readAmount("tokens", "100,000")).toBe(100_000);
  expect(readAmount("tokens", "١٠٠٬٠٠٠")).toBe(100_000);
  expect(readAmount("pages", "１２")).toBe(12);
  expect(readAmount("seconds", "5")).toBe(300);
  expect(readAmount("pages", " ")).toBeUndefined();
});

test("an amount that the service refuses is not usable", () => {
  for (const [unit, typed] of [
    ["tokens", "0"],
    ["tokens", "10000001"],
    ["pages", "501"],
    ["seconds", "241"],
    ["pages", "-3"],
    ["pages", "many"],
  ] as const) {
    expect(readAmount(unit, typed), typed).toBeNaN();
    expect(isUsable({ [unit]: readAmount(unit, typed) })).toBe(false);
  }
  expect(isUsable({ pages: 3 })).toBe(true);
});
