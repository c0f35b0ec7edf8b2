// A menu behind a button. What menus are made of comes with the first that is opened, or as soon as one is pointed at: until
// then there is the button alone.
import { cloneElement, useEffect, useState, type ComponentProps, type KeyboardEvent, type PointerEvent, type ReactElement, type ReactNode } from "react";
import type { IconName } from "./icon";

export interface MenuProps {
  trigger: ReactElement<ComponentProps<"button">>;
  children: ReactNode;
  side?: "top" | "bottom";
  align?: "start" | "end";
  /** Where focus goes afterwards, when the button is no longer there. */
  returnTo?: () => HTMLElement | null;
}

export interface ItemProps {
  icon?: IconName;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  hint?: string;
  keys?: string;
  children: ReactNode;
}

export interface CheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}

export interface ChoiceProps<T extends string> {
  value: T;
  onChange: (value: T) => void;
  options: readonly { value: T; label: string; hint?: string }[];
}

type Parts = typeof import("./menu-open");

let parts: Parts | null = null;
const load = async (): Promise<Parts> => (parts ??= await import("./menu-open"));

export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState(false);
  const [there, setThere] = useState(parts !== null);
  useEffect(() => {
    if (!wanted || there) return;
    let current = true;
    // Not by Suspense, which holds back for a third of a second what was not there at once.
    void load().then(
      () => current && setThere(true),
      () => current && setWanted(false), // the network is away: the next press tries again
    );
    return () => void (current = false);
  }, [wanted, there]);
  if (wanted && parts !== null) return <parts.Opened {...props} />;
  const open = () => setWanted(true);
  const closed = cloneElement(props.trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    onPointerEnter: () => void load().catch(() => {}),
    onFocus: () => void load().catch(() => {}),
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || event.ctrlKey || props.trigger.props.disabled === true) return;
      event.preventDefault(); // the focus goes to the menu
      open();
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (!["Enter", " ", "ArrowDown"].includes(event.key)) return;
      event.preventDefault();
      open();
    },
    onClick: open, // of what works without keys and pointers
  });
  return (
    <>
      {closed}
      {wanted && <Waiting onGone={() => setWanted(false)} />}
    </>
  );
}

/** While a menu is loaded for the first time: who presses Esc, goes on, or presses something else does not want it any more. */
function Waiting({ onGone }: { onGone: () => void }) {
  useEffect(() => {
    const key = (event: globalThis.KeyboardEvent) => ["Escape", "Tab"].includes(event.key) && onGone();
    window.addEventListener("keydown", key, true);
    window.addEventListener("pointerdown", onGone, true);
    return () => {
      window.removeEventListener("keydown", key, true);
      window.removeEventListener("pointerdown", onGone, true);
    };
  });
  return null;
}

// What stands in a menu: shown only within one that is open, so its parts are there.

export const MenuItem = (props: ItemProps) => parts && <parts.MenuItem {...props} />;

/** Something that is so or not; the menu stays open. */
export const MenuCheck = (props: CheckProps) => parts && <parts.MenuCheck {...props} />;

export const MenuLine = () => parts && <parts.MenuLine />;

/** One of several; options may have a line that explains them. */
export const MenuChoice = <T extends string>(props: ChoiceProps<T>) => parts && <parts.MenuChoice {...props} />;
