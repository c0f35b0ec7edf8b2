// An open menu and its items, on Radix. menu.tsx loads this module on demand.
import { DropdownMenu } from "radix-ui";
import { useEffect, useRef, useState, type ComponentProps, type ReactElement, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { handheld, useCloseOnBack } from "./close-on-back";
import { Icon, type IconName } from "./icon";
import { useMedia } from "./media";
import { closeOnSwipe } from "./sheet";
import "./menu.css";

export interface MenuProps {
  trigger: ReactElement<ComponentProps<"button">>;
  children: ReactNode;
  /** Loads what the children need, before the menu opens. May be called again. */
  load?: () => Promise<unknown>;
  side?: "top" | "bottom";
  align?: "start" | "end";
  /** Returns the element to focus after closing, if the button no longer exists. */
  returnTo?: () => HTMLElement | null;
  /** Called when the menu has closed, in place of the return of the focus to the button; returns false to return it. */
  onClosed?: () => boolean;
}

export interface ItemProps {
  icon?: IconName;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  hint?: string;
  keys?: string;
  /** Whether the menu stays open when the item is selected. */
  keepsOpen?: boolean;
  children: ReactNode;
}

export interface CheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
  hint?: string;
  children: ReactNode;
}

export interface ChoiceProps<T extends string> {
  value: T;
  onChange: (value: T) => void;
  options: readonly { value: T; label: string; hint?: string }[];
}

/**
 * Is open when mounted; from then on its button opens and closes it. On phones it is a sheet at the lower edge of the window.
 *
 * It is not modal for Radix, which would hide the whole page from screen readers, its headings included. A backdrop keeps
 * the pointer away from the page, and the menu is in the landmark or dialog of its button.
 *
 * focusesFirst: whether the first item has the focus when the menu is mounted, because a key has opened it. Radix notices only keys that
 * are pressed later, and would focus the menu.
 */
export function OpenMenu({
  trigger,
  children,
  focusesFirst,
  side = "bottom",
  align = "start",
  returnTo,
  onClosed,
}: MenuProps & { focusesFirst: boolean }) {
  const [open, setOpen] = useState(true);
  const [button, setButton] = useState<HTMLButtonElement | null>(null);
  const container = button?.closest('[role="dialog"]') ?? document.getElementById("main");
  const sheet = useMedia(handheld);
  const pressed = useRef(false); // since the menu was opened, the backdrop or the menu
  const close = () => setOpen(false);
  useEffect(() => void (open && (pressed.current = false)), [open]);
  // Runs after Radix has returned the focus to the button. It does not if something outside had the focus for a moment, or if the
  // button no longer exists.
  const goBack = (event: Event) => {
    if (onClosed?.() === true) return event.preventDefault();
    queueMicrotask(() => {
      const to = button?.isConnected === true ? button : returnTo?.();
      if (document.activeElement === document.body) to?.focus();
    });
  };
  return (
    <DropdownMenu.Root open={open} onOpenChange={setOpen} modal={false}>
      <DropdownMenu.Trigger
        asChild
        ref={setButton}
        // Assistive technology may send only a click, and so does a long press on a message.
        onClick={({ detail }) => detail === 0 && setOpen(true)}
      >
        {trigger}
      </DropdownMenu.Trigger>
      {open &&
        createPortal(
          <div
            className={`fixed inset-0 z-40 ${sheet ? "bg-overlay" : ""}`}
            onPointerDown={() => void (pressed.current = true)}
            onClick={(event) => {
              event.stopPropagation();
              if (pressed.current) close(); // not by the end of the touch that has opened the menu
            }}
          />,
          container ?? document.body,
        )}
      <DropdownMenu.Portal container={container}>
        <DropdownMenu.Content
          side={side}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          onCloseAutoFocus={goBack}
          // Radix would not return the focus to the button.
          onPointerDownOutside={(event) => (event.preventDefault(), close())}
          onPointerDownCapture={() => void (pressed.current = true)}
          // A sheet may open under the pointer that has opened it; Radix would select the item where that press ends.
          onPointerUpCapture={(event) => sheet && !pressed.current && event.preventDefault()}
          data-sheet={sheet ? "" : undefined}
          className={`z-50 overflow-y-auto border-line bg-raised shadow-float outline-none ${
            sheet
              ? "mx-auto max-h-[85dvh] w-full max-w-lg overscroll-contain rounded-t-lg border-t p-2 pb-[max(0.5rem,env(safe-area-inset-bottom))]"
              : "max-h-(--radix-dropdown-menu-content-available-height) max-w-[min(26rem,var(--radix-dropdown-menu-content-available-width))] min-w-52 rounded-md border p-1"
          }`}
        >
          {sheet && <Handle onClose={close} />}
          {children}
          {focusesFirst && <FocusFirst />}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/** Focuses the first item of its menu when it is mounted, or as soon as there is one, unless something else has the focus then. */
function FocusFirst() {
  const inMenu = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const menu = inMenu.current!.parentElement!;
    const focusFirst = () => {
      const first = menu.querySelector<HTMLElement>('[role^="menuitem"]:not([aria-disabled="true"])');
      first?.focus({ preventScroll: true });
      return first !== null;
    };
    if (focusFirst()) return;
    const observer = new MutationObserver(() => {
      if (document.activeElement !== menu || focusFirst()) observer.disconnect();
    });
    observer.observe(menu, { childList: true, subtree: true });
    return () => observer.disconnect();
  }, []);
  return <span ref={inMenu} hidden />;
}

/** The handle of a sheet. While it is mounted, swiping the sheet down and Back close it. */
function Handle({ onClose }: { onClose: () => void }) {
  useCloseOnBack(onClose);
  const handle = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => closeOnSwipe(handle.current!.parentElement!, () => close.current()), []);
  return <div ref={handle} aria-hidden="true" className="mx-auto mt-1 mb-2 h-1 w-10 shrink-0 rounded-full bg-line" />;
}

const item =
  "flex min-h-9 w-full cursor-pointer items-center gap-2.5 rounded-sm px-2.5 py-1 text-sm outline-none select-none data-highlighted:bg-hover data-disabled:cursor-default data-disabled:text-faint pointer-coarse:min-h-11";

export function MenuItem({
  icon,
  onSelect,
  danger = false,
  disabled = false,
  hint,
  keys,
  keepsOpen = false,
  children,
}: ItemProps) {
  const select = (event: Event) => {
    if (keepsOpen) event.preventDefault();
    onSelect();
  };
  return (
    <DropdownMenu.Item disabled={disabled} onSelect={select} className={`${item} ${danger ? "text-danger" : ""}`}>
      {icon !== undefined && <Icon name={icon} size={16} />}
      <WithHint hint={hint}>{children}</WithHint>
      {keys !== undefined && <kbd className="ms-auto ps-4 font-sans text-xs text-faint">{keys}</kbd>}
    </DropdownMenu.Item>
  );
}

function WithHint({ hint, children }: { hint: string | undefined; children: ReactNode }) {
  if (hint === undefined) return children;
  return (
    <span className="flex min-w-0 flex-col">
      {children}
      <span className="text-xs wrap-anywhere text-faint">{hint}</span>
    </span>
  );
}

/** A checkbox item; the menu stays open. */
export function MenuCheck({ checked, onChange, disabled = false, hint, children }: CheckProps) {
  return (
    <DropdownMenu.CheckboxItem
      checked={checked}
      disabled={disabled}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
      className={item}
    >
      <span className="w-4 shrink-0">
        <DropdownMenu.ItemIndicator>
          <Icon name="check" size={16} />
        </DropdownMenu.ItemIndicator>
      </span>
      <WithHint hint={hint}>{children}</WithHint>
    </DropdownMenu.CheckboxItem>
  );
}

export function MenuLine() {
  return <DropdownMenu.Separator className="mx-2.5 my-1 h-px bg-line" />;
}

/** Radio items; each may have a hint. */
export function MenuChoice<T extends string>({ value, onChange, options }: ChoiceProps<T>) {
  return (
    <DropdownMenu.RadioGroup value={value} onValueChange={(chosen) => onChange(chosen as T)}>
      {options.map((option) => (
        <DropdownMenu.RadioItem key={option.value} value={option.value} className={item}>
          <span className="w-4 shrink-0">
            <DropdownMenu.ItemIndicator>
              <Icon name="check" size={16} />
            </DropdownMenu.ItemIndicator>
          </span>
          <WithHint hint={option.hint}>{option.label}</WithHint>
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  );
}
