import { expect, test } from "vitest";
import type { Schemas } from "./client";
import { mergeNewestPage } from "./merge-newest-page";

type List = Schemas["MessageList"];

/** A page with the messages numbered from..to; older messages are behind its cursor. */
const page = (from: number, to: number, status: "complete" | "streaming" = "complete"): List =>
  ({
    branch_id: "br_1",
    data: Array.from({ length: to - from + 1 }, (_, i) => ({
      message_id: `msg_${from + i}`,
      status: from + i === to ? status : "complete",
    })),
    older_cursor: from > 1 ? `before ${from}` : null,
    newer_cursor: null,
    next_cursor: from > 1 ? `before ${from}` : null,
    has_more: from > 1,
  }) as unknown as List;

const numbers = (pages: List[]) =>
  pages.toReversed().flatMap(({ data }) => data.map(({ message_id }) => Number(message_id.slice(4))));

test("new messages are added, and no message is lost or duplicated between the pages", () => {
  for (let added = 0; added <= 99; added++) {
    const known = {
      pages: [page(201, 300, "streaming"), page(101, 200), page(1, 100)],
      pageParams: [null, "before 201", "before 101"],
    };
    const after = mergeNewestPage(known, page(201 + added, 300 + added))!;
    expect(numbers(after.pages)).toEqual(Array.from({ length: 300 + added }, (_, i) => i + 1));
    expect(after.pages[0]!.older_cursor).toBe("before 201");
    expect(after.pages[0]!.data.find(({ message_id }) => message_id === "msg_300")!.status).toBe("complete");
    expect(after.pageParams).toEqual(known.pageParams);
  }
});

test("pages that do not overlap are not merged, so that everything is fetched again", () => {
  const known = { pages: [page(201, 300), page(101, 200)], pageParams: [null, "before 201"] };
  expect(mergeNewestPage(known, page(301, 400))).toBeNull();
});

test("a single page is replaced by the newest one", () => {
  expect(mergeNewestPage({ pages: [page(1, 3)], pageParams: [null] }, page(1, 5))!.pages).toEqual([page(1, 5)]);
});
