import { TYPE, type MessageFormatElement } from "@formatjs/icu-messageformat-parser";
import { expect, test } from "vitest";
import { insertTexts } from "./insert-texts";

const hello: MessageFormatElement = { type: TYPE.literal, value: "Hello, " };
const name: MessageFormatElement = { type: TYPE.argument, value: "name" };

test("texts are inserted; numbers, plurals and missing values are left to Intl", () => {
  expect(insertTexts([hello, name, hello], { name: "Robin" })).toBe("Hello, RobinHello, ");
  expect(insertTexts([hello])).toBe("Hello, ");
  expect(insertTexts([hello, name], { name: 3 })).toBeNull();
  expect(insertTexts([hello, name])).toBeNull();
  expect(insertTexts([hello, { type: TYPE.pound }])).toBeNull();
  expect(insertTexts([{ type: TYPE.number, value: "name", style: null }], { name: "2" })).toBeNull();
});
