import { expect, test } from "vitest";
import { piecesOf } from "./text-pieces";

const page = (page: number, offset: number, length: number) => ({ kind: "page", page, offset, length }) as const;

test("a text is divided at its pages and around the cited part, across ranges", () => {
  const pages = [page(1, 0, 5), page(2, 5, 8)]; // “Ébb\n” has 5 bytes
  const ranges = [
    { offset: 0, text: "Ébb\nFl", blocks: pages },
    { offset: 7, text: "ow up\nEnd", blocks: [pages[1]!] },
  ];
  expect(piecesOf(ranges)).toEqual([
    { heading: pages[0], text: "Ébb", cited: false },
    { heading: pages[1], text: "Flow up\nEnd", cited: false },
  ]);
  expect(piecesOf(ranges, { offset: 5, length: 8 }).map(({ text, cited }) => [text, cited])).toEqual([
    ["Ébb", false],
    ["Flow up", true],
    ["End", false],
  ]);
});

test("a text that starts within a page has the heading of the page", () => {
  const inside = page(7, 0, 100);
  expect(piecesOf([{ offset: 40, text: "Tides", blocks: [inside] }], { offset: 40, length: 5 })).toEqual([
    { heading: inside, text: "Tides", cited: true },
  ]);
  expect(piecesOf([])).toEqual([]);
});
