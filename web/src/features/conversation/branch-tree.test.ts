import { describe, expect, test } from "vitest";
import type { Branch } from "./branches";
import { rowsOfTree, stepOf, tabStop } from "./branch-tree";

const branch = (id: string, parent: string | null = null, name = ""): Branch => ({
  branch_id: id,
  parent_branch_id: parent,
  base_message_id: parent === null ? null : `message of ${parent}`,
  base_depth: parent === null ? 0 : 2,
  head_message_id: `message of ${id}`,
  head_depth: 4,
  created_at: "2026-01-01T00:00:00.000Z",
  preview: "",
  name,
  version: 1,
  active: false,
});

// trunk ─ a ─ c
//       └ b
// other
const branches = [
  branch("trunk"),
  branch("a", "trunk"),
  branch("other"),
  branch("b", "trunk"),
  branch("c", "a"),
] as const;
const outline = (list: readonly Branch[], collapsed?: ReadonlySet<string>) =>
  rowsOfTree(list, collapsed).map(
    ({ branch: { branch_id: id }, level, position, count, expanded }) =>
      `${"  ".repeat(level - 1)}${id} ${position}/${count}${expanded === null ? "" : expanded ? " -" : " +"}`,
  );

describe("the tree of branches", () => {
  test("every branch is below its parent, siblings in the order of their creation", () => {
    expect(outline(branches)).toEqual(["trunk 1/2 -", "  a 1/2 -", "    c 1/1", "  b 2/2", "other 2/2"]);
    expect(outline([])).toEqual([]);
  });

  test("the branches below a collapsed one are left out", () => {
    expect(outline(branches, new Set(["a"]))).toEqual(["trunk 1/2 -", "  a 1/2 +", "  b 2/2", "other 2/2"]);
    expect(outline(branches, new Set(["trunk", "b"]))).toEqual(["trunk 1/2 +", "other 2/2"]);
  });

  test("a branch is at the top until its parent is loaded", () => {
    expect(outline([branch("c", "a"), branch("d", "c")])).toEqual(["c 1/1 -", "  d 1/1"]);
  });

  test("a branch on two pages is one row, as the later page has it", () => {
    const rows = rowsOfTree([...branches, branch("other", null, "Renamed")]);
    expect(rows.map((row) => row.branch.branch_id)).toEqual(["trunk", "a", "c", "b", "other"]);
    expect(rows.at(-1)!.branch.name).toBe("Renamed");
  });

  test("a thousand levels are one row each", () => {
    const deep = Array.from({ length: 1000 }, (_, at) => branch(`${at}`, at === 0 ? null : `${at - 1}`));
    expect(rowsOfTree(deep).map(({ level }) => level)).toEqual(deep.map((_, at) => at + 1));
  });
});

describe("the keys of the tree", () => {
  const rows = rowsOfTree(branches);
  const collapsed = rowsOfTree(branches, new Set(["a"]));

  test("up, down, Home and End move through the rows that are shown", () => {
    expect(stepOf(rows, "a", "ArrowDown")).toEqual({ focus: "c" });
    expect(stepOf(collapsed, "a", "ArrowDown")).toEqual({ focus: "b" });
    expect(stepOf(rows, "b", "ArrowUp")).toEqual({ focus: "c" });
    expect(stepOf(rows, "c", "Home")).toEqual({ focus: "trunk" });
    expect(stepOf(rows, "c", "End")).toEqual({ focus: "other" });
    expect(stepOf(rows, "trunk", "ArrowUp")).toBeNull();
    expect(stepOf(rows, "other", "ArrowDown")).toBeNull();
  });

  test("right shows the rows below, then moves to the first of them; left reverses that", () => {
    expect(stepOf(collapsed, "a", "ArrowRight")).toEqual({ expand: true });
    expect(stepOf(rows, "a", "ArrowRight")).toEqual({ focus: "c" });
    expect(stepOf(rows, "c", "ArrowRight")).toBeNull();
    expect(stepOf(rows, "c", "ArrowLeft")).toEqual({ focus: "a" });
    expect(stepOf(rows, "a", "ArrowLeft")).toEqual({ expand: false });
    expect(stepOf(collapsed, "a", "ArrowLeft")).toEqual({ focus: "trunk" });
    expect(stepOf(rows, "other", "ArrowLeft")).toBeNull();
  });

  test("in right-to-left languages left and right are swapped", () => {
    expect(stepOf(rows, "a", "ArrowLeft", "rtl")).toEqual({ focus: "c" });
    expect(stepOf(rows, "c", "ArrowRight", "rtl")).toEqual({ focus: "a" });
  });

  test("other keys, and keys at a row that is not shown, do nothing", () => {
    expect(stepOf(rows, "a", "Tab")).toBeNull();
    expect(stepOf(collapsed, "c", "ArrowDown")).toBeNull();
  });

  test("Tab stops at the row that had the focus, else at the active branch, else at the first row", () => {
    expect(tabStop(rows, "c", "b")).toBe("c");
    expect(tabStop(collapsed, "c", "b")).toBe("b");
    expect(tabStop(rows, null, "unknown")).toBe("trunk");
    expect(tabStop([], null, "b")).toBeNull();
  });
});
