// A menu behind a button. What menus are made of comes with the first that is opened, or as soon as one is pointed at: until
// then there is the button alone.
import { cloneElement, lazy, Suspense, useEffect, useState, type ComponentProps, type JSX, type KeyboardEvent, type PointerEvent, type ReactElement, type ReactNode } from "react";
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

const load = () => import("./menu-open");
const Opened = lazy(() => load().then((m) => ({ default: m.Opened })));

export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState(false);
  const open = () => setWanted(true);
  const closed = cloneElement(props.trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    onPointerEnter: () => void load(),
    onFocus: () => void load(),
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
  const waiting = (
    <>
      {closed}
      <Waiting onGone={() => setWanted(false)} />
    </>
  );
  return wanted ? (
    <Suspense fallback={waiting}>
      <Opened {...props} />
    </Suspense>
  ) : (
    closed
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

export const MenuItem = lazy(() => load().then((m) => ({ default: m.MenuItem })));

/** Something that is so or not; the menu stays open. */
export const MenuCheck = lazy(() => load().then((m) => ({ default: m.MenuCheck })));

export const MenuLine = lazy(() => load().then((m) => ({ default: m.MenuLine })));

/** One of several; options may have a line that explains them. */
export const MenuChoice = lazy(() => load().then((m) => ({ default: m.MenuChoice }))) as <T extends string>(props: ChoiceProps<T>) => JSX.Element;
