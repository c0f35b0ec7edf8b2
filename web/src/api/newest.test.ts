import { expect, test } from "vitest";
import type { Schemas } from "./client";
import { withNewest } from "./newest";

type List = Schemas["MessageList"];

/** A page of messages from one number to another; those below it are behind its cursor. */
const page = (from: number, to: number, status: "complete" | "streaming" = "complete"): List =>
  ({
    branch_id: "br_1",
    data: Array.from({ length: to - from + 1 }, (_, i) => ({ message_id: `msg_${from + i}`, status: from + i === to ? status : "complete" })),
    older_cursor: from > 1 ? `before ${from}` : null,
    newer_cursor: null,
    next_cursor: from > 1 ? `before ${from}` : null,
    has_more: from > 1,
  }) as unknown as List;

const numbers = (pages: List[]) => pages.toReversed().flatMap(({ data }) => data.map(({ message_id }) => Number(message_id.slice(4))));

test("what came is added, and no message is lost or doubled between the pages", () => {
  for (let came = 0; came <= 99; came++) {
    const known = { pages: [page(201, 300, "streaming"), page(101, 200), page(1, 100)], pageParams: [null, "before 201", "before 101"] };
    const after = withNewest(known, page(201 + came, 300 + came))!;
    expect(numbers(after.pages)).toEqual(Array.from({ length: 300 + came }, (_, i) => i + 1));
    expect(after.pages[0]!.older_cursor).toBe("before 201");
    expect(after.pages[0]!.data.find(({ message_id }) => message_id === "msg_300")!.status).toBe("complete");
    expect(after.pageParams).toEqual(known.pageParams);
  }
});

test("so much came that the pages do not meet: everything is read again", () => {
  const known = { pages: [page(201, 300), page(101, 200)], pageParams: [null, "before 201"] };
  expect(withNewest(known, page(301, 400))).toBeNull();
});

test("a single page is the newest one", () => {
  expect(withNewest({ pages: [page(1, 3)], pageParams: [null] }, page(1, 5))!.pages).toEqual([page(1, 5)]);
});
