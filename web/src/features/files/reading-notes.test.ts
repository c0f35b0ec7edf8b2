import { expect, test } from "vitest";
import { readingMessages } from "../../messages/reading";
import { readingNotes } from "./reading-notes";

const keys = (key: string) => key;

test("a text that could not be read says why", () => {
  expect(readingNotes(keys, { reason: "no_ocr", notes: [] })).toEqual(["file.reason.no_ocr"]);
  expect(readingNotes(keys, { reason: "processing", notes: [] })).toEqual([]);
  expect(readingNotes(keys, { reason: null, notes: [] })).toEqual([]);
});

test("what was left out of a text is said", () => {
  const notes = [
    { kind: "encoding", value: "big5", count: 80 },
    { kind: "hidden", count: 2 },
  ] as const;
  const said = readingNotes(keys, { reason: null, notes, truncated: true });
  expect(said).toEqual(["file.note.encoding", "file.note.hidden", "file.truncated"]);
  expect(said.every((key) => key in readingMessages["en"]!)).toBe(true);
});
