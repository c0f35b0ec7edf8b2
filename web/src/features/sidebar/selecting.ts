// The selection of several conversations, in the sidebar or in the archive, and the rows that an action on it hides.
import { create } from "zustand";
import type { Conversation } from "../../api/client";
import { emptySelection, extend, prune, toggle, type Selection } from "./selection";

export type ListName = "sidebar" | "archive";

interface Selecting {
  /** The list whose rows have checkboxes; null: none. */
  list: ListName | null;
  selection: Selection;
  /**
   * The conversations that are leaving a list: an action on several of them has started, and the list is not refetched
   * yet. A refetch in the meantime may still contain them.
   */
  leaving: ReadonlyMap<string, ListName>;
}

export const useSelecting = create<Selecting>(() => ({ list: null, selection: emptySelection, leaving: new Map() }));

/** Return the rows that can be selected, in the order of the lists on the page. */
const orders: Record<ListName, () => readonly string[]> = { sidebar: () => [], archive: () => [] };

/**
 * Sets the function that returns the rows of a list that can be selected. It is called only when rows are selected: a
 * list may have a hundred thousand. Rows that left leave the selection; a selected row that is not in the list yet stays
 * selected (selectAgain).
 */
export function setSelectable(list: ListName, order: () => readonly string[]): void {
  const before = orders[list];
  let ids: readonly string[] | null = null;
  orders[list] = () => (ids ??= order());
  const { list: selected, selection } = useSelecting.getState();
  if (selected !== list) return;
  const now = new Set(orders[list]());
  useSelecting.setState({ selection: prune(selection, new Set(before().filter((id) => !now.has(id)))) });
}

const change = (list: ListName, step: (selection: Selection) => Selection): void =>
  useSelecting.setState((before) => ({
    list,
    selection: step(before.list === list ? before.selection : emptySelection),
  }));

/** Selects or deselects a row; with range, selects the rows from the anchor to it. Starts to select if necessary. */
export function select(list: ListName, id: string, range = false): void {
  change(list, (selection) => (range ? extend(selection, orders[list](), id) : toggle(selection, id)));
}

/** Selects the rows from one row, unless a range already starts at another, to its neighbour. */
export function selectTo(list: ListName, from: string, to: string): void {
  change(list, (selection) =>
    extend(selection.anchor === null ? toggle(selection, from) : selection, orders[list](), to),
  );
}

/** Shows the checkboxes of a list, with nothing selected. */
export const startSelecting = (list: ListName): void => change(list, () => emptySelection);

/** Selects conversations of one list that an action did not change, in addition to what was selected since. */
export function selectAgain(conversations: readonly Conversation[]): void {
  const [first] = conversations;
  if (first === undefined) return;
  change(first.archived_at === null ? "sidebar" : "archive", ({ ids, anchor }) => {
    const all = new Set([...ids, ...conversations.map((one) => one.conversation_id)]);
    return { ids: all, anchor, base: all };
  });
}

/**
 * Deselects conversations because an action on them starts. If nothing else is selected, the checkboxes disappear.
 * Returns whether one of them was selected.
 */
export function deselect(conversations: readonly Conversation[]): boolean {
  const { list, selection } = useSelecting.getState();
  const removed = new Set(conversations.map((one) => one.conversation_id));
  const rest = [...selection.ids].filter((id) => !removed.has(id));
  if (list === null || rest.length === selection.ids.size) return false;
  if (rest.length === 0) return stopSelecting(list);
  useSelecting.setState({ selection: prune(selection, removed) });
  return true;
}

/** Hides the checkboxes of a list. Returns whether it had any. If a hidden element had the focus, a row takes it. */
export function stopSelecting(list: ListName): boolean {
  if (useSelecting.getState().list !== list) return false;
  useSelecting.setState({ list: null, selection: emptySelection });
  requestAnimationFrame(() => {
    if (document.activeElement !== document.body) return;
    const rows = document.querySelector<HTMLElement>(`[data-list="${list}"]`);
    (rows?.querySelector<HTMLElement>("[data-conversation][tabindex='0']") ?? rows)?.focus();
  });
  return true;
}

/** Hides conversations in a list while an action removes them from it; null: displays them again. */
export function setLeaving(conversations: readonly Conversation[], list: ListName | null): void {
  useSelecting.setState(({ leaving }) => {
    const next = new Map(leaving);
    for (const { conversation_id } of conversations)
      if (list === null) next.delete(conversation_id);
      else next.set(conversation_id, list);
    return { leaving: next };
  });
}
