// A menu with its button. The code of menus, and that of the items, is loaded when a button is first focused, hovered or
// pressed; until then only the button exists.
import { cloneElement, useEffect, useState, type KeyboardEvent, type PointerEvent } from "react";
import { useLocalization } from "../messages/localization";
import { reportPartFailure } from "./deferred";
import { loadable } from "./loadable";
import type { CheckProps, ChoiceProps, ItemProps, MenuProps } from "./menu-content";

const content = loadable(() => import("./menu-content"));

export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState<"by key" | "by pointer" | null>(null);
  const { load: loadItems } = props;
  const { t } = useLocalization();
  const [loaded, setLoaded] = useState(content.value !== null && loadItems === undefined);
  useEffect(() => {
    if (wanted === null || loaded) return;
    let current = true;
    // Not with Suspense: React delays content that had to be loaded by about a third of a second.
    void Promise.all([content.load(), loadItems?.()]).then(
      () => current && setLoaded(true),
      () => {
        if (!current) return;
        setWanted(null); // the next press tries again
        reportPartFailure(t);
      },
    );
    return () => void (current = false);
  }, [wanted, loaded, loadItems, t]);
  const parts = content.value;
  if (wanted !== null && loaded && parts !== null)
    return <parts.OpenMenu {...props} focusesFirst={wanted === "by key"} />;
  const open = () => setWanted((before) => before ?? "by pointer");
  const preload = () => void Promise.all([content.load(), loadItems?.()]).catch(() => {});
  const closed = cloneElement(props.trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    onPointerEnter: preload,
    onFocus: preload,
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || event.ctrlKey || props.trigger.props.disabled === true) return;
      event.preventDefault(); // the menu gets the focus, not the button
      open();
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (!["Enter", " ", "ArrowDown"].includes(event.key)) return;
      event.preventDefault();
      setWanted("by key");
    },
    onClick: open, // for assistive technology that sends only click events
  });
  return (
    <>
      {closed}
      {wanted !== null && <CancelWhileLoading onCancel={() => setWanted(null)} />}
    </>
  );
}

/** Mounted while a menu is loading: Escape, Tab or another pointer press cancels the opening. */
function CancelWhileLoading({ onCancel }: { onCancel: () => void }) {
  useEffect(() => {
    const key = (event: globalThis.KeyboardEvent) => ["Escape", "Tab"].includes(event.key) && onCancel();
    window.addEventListener("keydown", key, true);
    window.addEventListener("pointerdown", onCancel, true);
    return () => {
      window.removeEventListener("keydown", key, true);
      window.removeEventListener("pointerdown", onCancel, true);
    };
  });
  return null;
}

// The items of a menu. They are rendered only in an open menu, so the module is loaded.

export const MenuItem = (props: ItemProps) => content.value && <content.value.MenuItem {...props} />;

/** A checkbox item; the menu stays open. */
export const MenuCheck = (props: CheckProps) => content.value && <content.value.MenuCheck {...props} />;

export const MenuLine = () => content.value && <content.value.MenuLine />;

/** Radio items; each may have a hint. */
export const MenuChoice = <T extends string>(props: ChoiceProps<T>) =>
  content.value && <content.value.MenuChoice {...props} />;
