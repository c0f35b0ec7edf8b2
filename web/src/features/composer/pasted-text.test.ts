import { expect, test } from "vitest";
import { isPasted, pastedFile } from "./pasted-text";

test("a long pasted text becomes a text file that is recognized later", async () => {
  const file = pastedFile("Line one\nLine two");
  expect(await file.text()).toBe("Line one\nLine two");
  expect(isPasted(file.name)).toBe(true);
  expect(isPasted("notes.txt")).toBe(false);
});
