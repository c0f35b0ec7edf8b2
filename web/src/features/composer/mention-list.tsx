// The list that a word at the caret opens. The field keeps the focus. It stays a text field for screen readers, because the role
// combobox is not allowed on a field with several lines; aria-activedescendant names the active item.
import { useEffect, useId, useState, type ReactNode, type RefObject } from "react";
import type { Mention } from "./mention";
import { useKeys } from "./use-mention";

interface MentionListProps<Item> {
  field: RefObject<HTMLTextAreaElement | null>;
  /** On which side of the field there is room for the list. */
  side: "above" | "below";
  /** The word that opens the list; null: the list is closed. */
  mention: Mention | null;
  close: () => void;
  items: readonly Item[];
  idOf: (item: Item) => string;
  loading: boolean;
  label: string;
  /** What is shown instead of no items. */
  none: ReactNode;
  /** What screen readers announce when the items are loaded. */
  count: string;
  onChoose: (item: Item, mention: Mention) => void;
  children: (item: Item) => ReactNode;
}

export function MentionList<Item>(props: MentionListProps<Item>) {
  const { field, side, mention, close, items, idOf, loading, label, none, count, onChoose, children } = props;
  const id = useId();
  const [moved, setMoved] = useState<{ to: number; in: string } | null>(null);
  // A changed text or list starts again with its first item.
  const list = items.map(idOf).join();
  const active = moved?.in === list ? moved.to : 0;
  const choose = (item: Item) => mention !== null && onChoose(item, mention);
  /** Handles a key of the open list; false: the field handles it. */
  const press = (key: string): boolean => {
    if (key === "Escape") close();
    else if ((key === "ArrowDown" || key === "ArrowUp") && items.length > 0)
      setMoved({ to: (active + (key === "ArrowDown" ? 1 : items.length - 1)) % items.length, in: list });
    else if (key === "Enter" || key === "Tab") {
      if (items.length > 0) choose(items[active]!);
      else return key === "Enter" && loading; // the message is not sent while the list is loading
    } else return false;
    return true;
  };
  const open = mention !== null;
  useKeys(field, open, press);
  const option = (at: number) => `${id}-${at}`;
  useDescription(field, open ? id : null, open && items.length > 0 ? option(active) : null);
  return (
    <>
      {open && (
        <div
          className={`absolute inset-x-0 z-30 overflow-hidden rounded-md border border-line bg-raised shadow-float ${side === "above" ? "bottom-full mb-1.5" : "top-full mt-1.5"}`}
        >
          <ul
            id={id}
            role="listbox"
            aria-label={label}
            className="max-h-[min(40dvh,18rem)] overflow-y-auto p-1 empty:hidden"
          >
            {items.map((item, at) => (
              <li
                key={idOf(item)}
                id={option(at)}
                role="option"
                aria-selected={at === active}
                onPointerDown={(event) => event.preventDefault()} // the field keeps the focus
                onPointerMove={() => at === active || setMoved({ to: at, in: list })}
                onClick={() => choose(item)}
                className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-sm px-2.5 text-sm select-none aria-selected:bg-hover pointer-coarse:min-h-11 forced-colors:aria-selected:outline-2"
              >
                {children(item)}
              </li>
            ))}
          </ul>
          {items.length === 0 && <p className="px-3.5 py-2.5 text-sm text-soft">{none}</p>}
        </div>
      )}
      <p role="status" className="sr-only">
        {open && !loading && count}
      </p>
    </>
  );
}

/** Describes the list and its active item to screen readers, and keeps that item visible. */
function useDescription(
  field: RefObject<HTMLTextAreaElement | null>,
  list: string | null,
  active: string | null,
): void {
  useEffect(() => {
    const area = field.current;
    if (area === null || list === null) return;
    const attributes = {
      "aria-autocomplete": "list",
      "aria-haspopup": "listbox",
      "aria-controls": list,
      ...(active === null ? {} : { "aria-activedescendant": active }),
    };
    for (const [name, value] of Object.entries(attributes)) area.setAttribute(name, value);
    if (active !== null) document.getElementById(active)?.scrollIntoView({ block: "nearest" });
    return () => {
      for (const name of Object.keys(attributes)) area.removeAttribute(name);
    };
  }, [field, list, active]);
}
