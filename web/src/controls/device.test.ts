import { expect, test } from "vitest";
import { deviceOf } from "./device";

test("what was kept on the device is read, and what is damaged is as for everybody", () => {
  const standard = { announce: "end", letters: true, sidebar: true };
  expect(deviceOf('{"announce":"sentences","letters":false,"sidebar":false}')).toEqual({ announce: "sentences", letters: false, sidebar: false });
  for (const damaged of [null, "", "null", "{", "[]", '"x"', '{"announce":"shout","letters":1}']) expect(deviceOf(damaged)).toEqual(standard);
});
