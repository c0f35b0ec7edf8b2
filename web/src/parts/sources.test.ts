import { expect, test } from "vitest";
import type { Source } from "../generated/events";
import { sourcesOf } from "./sources";

test("a web page is a source by its address, a file by its identifier and its pages", () => {
  const page = { number: 1, url: "https://www.example.org/tides", title: "Tides", size: 10 };
  const untitled = { number: 2, url: "https://example.org/a", title: "", size: 0 };
  const file = {
    number: 3,
    file_id: "file_1",
    title: "notes.pdf",
    size: 90,
    blocks: [{ kind: "page", page: 4, offset: 30, length: 20 }],
  };
  expect(sourcesOf([page, untitled, file] as unknown as Source[])).toEqual([
    { index: 0, title: "Tides", url: page.url, marker: "[1]" },
    { index: 0, title: untitled.url, url: untitled.url, marker: "[2]" },
    { index: 0, title: "notes.pdf", file_id: "file_1", marker: "[3]", kind: "page", page: 4, offset: 30, length: 20 },
  ]);
});
