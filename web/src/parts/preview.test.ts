import { expect, test } from "vitest";
import { lineCount, maxLineLength, maxLines, previewOf } from "./preview";

test("a text within the limits is shown whole", () => {
  expect(previewOf("a\nb")).toEqual({ lines: ["a", "b"], cut: false });
});

test("a line of a megabyte is cut, and so are too many lines", () => {
  const { lines, cut } = previewOf("x".repeat(1_000_000));
  expect(cut).toBe(true);
  expect(lines[0]!.length).toBe(maxLineLength + 1);
  const many = "x\n".repeat(maxLines * 2);
  expect(previewOf(many)).toMatchObject({ cut: true });
  expect(previewOf(many).lines.length).toBe(maxLines);
  expect(lineCount(many)).toBe(maxLines * 2 + 1);
});
