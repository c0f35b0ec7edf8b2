// Which conversations of a list are selected, and the outcome of an action on them. Pure.

export interface Selection {
  ids: ReadonlySet<string>;
  /** The row at which a range starts: the last one that was selected or deselected by itself; null: none. */
  anchor: string | null;
  /** What was selected before the range; another end of the range replaces the range. */
  base: ReadonlySet<string>;
}

export const emptySelection: Selection = { ids: new Set(), anchor: null, base: new Set() };

/** Selects a row, or deselects it. */
export function toggle({ ids }: Selection, id: string): Selection {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return { ids: next, anchor: id, base: next };
}

/** Selects the rows from the anchor to another row. Without an anchor, it selects only that row. */
export function extend({ ids, anchor, base }: Selection, order: readonly string[], to: string): Selection {
  const from = anchor === null ? -1 : order.indexOf(anchor);
  const end = order.indexOf(to);
  if (end < 0) return { ids, anchor, base };
  if (from < 0) return { ids: new Set([...ids, to]), anchor: to, base: ids };
  const range = order.slice(Math.min(from, end), Math.max(from, end) + 1);
  return { ids: new Set([...base, ...range]), anchor, base };
}

/** Deselects rows that left the list. Returns the same selection if none of them is selected or its anchor. */
export function prune(selection: Selection, left: ReadonlySet<string>): Selection {
  const { ids, anchor, base } = selection;
  const stays = (id: string) => !left.has(id);
  const anchored = anchor === null || stays(anchor);
  if (anchored && [...ids].every(stays)) return selection;
  return {
    ids: new Set([...ids].filter(stays)),
    anchor: anchored ? anchor : null,
    base: new Set([...base].filter(stays)),
  };
}

/** The outcome of one action on several items, in their order. */
export interface Outcome<Item, Result> {
  done: readonly Result[];
  refused: readonly { item: Item; reason: unknown }[];
}

export function outcomeOf<Item, Result>(
  items: readonly Item[],
  results: readonly PromiseSettledResult<Result>[],
): Outcome<Item, Result> {
  return {
    done: results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
    refused: results.flatMap((result, at) =>
      result.status === "rejected" ? [{ item: items[at]!, reason: result.reason as unknown }] : [],
    ),
  };
}

/** The numbers of the message about an outcome of which something was refused. */
export const countsOf = ({ done, refused }: Outcome<unknown, unknown>) => ({
  done: done.length,
  count: done.length + refused.length,
  refused: refused.length,
});
