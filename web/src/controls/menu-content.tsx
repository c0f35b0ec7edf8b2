// An open menu and its items, on Radix. menu.tsx loads this module on demand.
import { DropdownMenu } from "radix-ui";
import type { ComponentProps, ReactElement, ReactNode } from "react";
import { Icon, type IconName } from "./icon";

export interface MenuProps {
  trigger: ReactElement<ComponentProps<"button">>;
  children: ReactNode;
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

/** Is open when mounted; from then on its button opens and closes it. */
export function OpenMenu({ trigger, children, side = "bottom", align = "start", returnTo, onClosed }: MenuProps) {
  // Runs after Radix has returned the focus to the button, in case the button no longer exists.
  const goBack = (event: Event) => {
    if (onClosed?.() === true) return event.preventDefault();
    queueMicrotask(() => document.activeElement === document.body && returnTo?.()?.focus());
  };
  return (
    <DropdownMenu.Root defaultOpen>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          side={side}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          onCloseAutoFocus={goBack}
          className="z-50 max-h-(--radix-dropdown-menu-content-available-height) max-w-[min(26rem,var(--radix-dropdown-menu-content-available-width))] min-w-52 overflow-y-auto rounded-md border border-line bg-raised p-1 shadow-float"
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
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
