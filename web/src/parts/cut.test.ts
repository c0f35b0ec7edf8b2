import { expect, test } from "vitest";
import { lineCount, longestLine, mostLines, previewOf } from "./cut";

test("what fits is shown whole", () => {
  expect(previewOf("a\nb")).toEqual({ lines: ["a", "b"], cut: false });
});

test("a line of a megabyte is cut, and so are too many lines", () => {
  const { lines, cut } = previewOf("x".repeat(1_000_000));
  expect(cut).toBe(true);
  expect(lines[0]!.length).toBe(longestLine + 1);
  const many = "x\n".repeat(mostLines * 2);
  expect(previewOf(many)).toMatchObject({ cut: true });
  expect(previewOf(many).lines.length).toBe(mostLines);
  expect(lineCount(many)).toBe(mostLines * 2 + 1);
});
