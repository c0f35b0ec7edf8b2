// The branches of a conversation as the rows of a tree, and where its keys lead. Pure.
import type { Branch } from "./branches";

export interface TreeRow {
  branch: Branch;
  /** The row that this one is below; null: none. */
  parent: string | null;
  /** 1 for a branch without a parent. */
  level: number;
  /** The number of the row among the rows with the same parent, from 1, and how many these are. */
  position: number;
  count: number;
  /** Whether the rows below it are shown; null: there are none. */
  expanded: boolean | null;
}

/**
 * Returns the rows of the tree, each below its parent, siblings in the order of the list. A branch whose parent is not
 * loaded yet is at the top. The rows below a collapsed branch are left out.
 */
export function rowsOfTree(branches: readonly Branch[], collapsed: ReadonlySet<string> = new Set()): TreeRow[] {
  // A branch that was created while pages were loading may be on two of them.
  const known = new Map(branches.map((branch) => [branch.branch_id, branch]));
  const below = new Map<string | null, Branch[]>();
  for (const branch of known.values()) {
    const { parent_branch_id: named } = branch;
    const parent = named !== null && known.has(named) ? named : null;
    below.set(parent, [...(below.get(parent) ?? []), branch]);
  }
  const rows: TreeRow[] = [];
  // A list in place of recursion: there may be a thousand levels. Its last row is the next one.
  const pending: TreeRow[] = [];
  const add = (parent: string | null, level: number) => {
    const children = below.get(parent) ?? [];
    for (const [at, branch] of [...children.entries()].toReversed()) {
      const id = branch.branch_id;
      const expanded = below.has(id) ? !collapsed.has(id) : null;
      pending.push({ branch, parent, level, position: at + 1, count: children.length, expanded });
    }
  };
  add(null, 1);
  for (let row = pending.pop(); row !== undefined; row = pending.pop()) {
    rows.push(row);
    if (row.expanded === true) add(row.branch.branch_id, row.level + 1);
  }
  return rows;
}

/** What a key does in a tree: it moves the focus to a row, or it shows or hides the rows below the row. */
export type TreeStep = { focus: string } | { expand: boolean };

/** Returns what a key does at a row; null: nothing. In right-to-left languages the left and right keys are swapped. */
export function stepOf(
  rows: readonly TreeRow[],
  id: string,
  key: string,
  direction: "ltr" | "rtl" = "ltr",
): TreeStep | null {
  const at = rows.findIndex(({ branch }) => branch.branch_id === id);
  const row = rows[at];
  if (row === undefined) return null;
  const to = (target: TreeRow | undefined) => (target === undefined ? null : { focus: target.branch.branch_id });
  switch (key) {
    case "ArrowUp":
      return to(rows[at - 1]);
    case "ArrowDown":
      return to(rows[at + 1]);
    case "Home":
      return to(rows[0]);
    case "End":
      return to(rows.at(-1));
    case direction === "ltr" ? "ArrowRight" : "ArrowLeft":
      return row.expanded === null ? null : row.expanded ? to(rows[at + 1]) : { expand: true };
    case direction === "ltr" ? "ArrowLeft" : "ArrowRight":
      if (row.expanded === true) return { expand: false };
      return row.parent === null ? null : { focus: row.parent };
    default:
      return null;
  }
}

/** Returns the row where Tab stops: the last one that had the focus, else that of the active branch, else the first. */
export function tabStop(rows: readonly TreeRow[], focused: string | null, active: string | null): string | null {
  const has = (id: string | null) => id !== null && rows.some(({ branch }) => branch.branch_id === id);
  return has(focused) ? focused : has(active) ? active : (rows[0]?.branch.branch_id ?? null);
}
