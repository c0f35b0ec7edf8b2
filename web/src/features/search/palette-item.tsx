// An item of the palette, and a group of items under a heading.
import { Command } from "cmdk";
import type { ReactNode } from "react";
import { Icon, type IconName } from "../../controls/icon";
import { useLocalization } from "../../messages/localization";

export interface ResultProps {
  /** Returns what a chosen item does: it closes the palette, then it calls run. */
  choose: (run: () => void) => () => void;
}

export function Group({ heading, show, children }: { heading: string; show: boolean; children: ReactNode }) {
  if (!show) return null;
  return (
    <Command.Group
      heading={heading}
      className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-faint"
    >
      {children}
    </Command.Group>
  );
}

/** When something was written or changed: a time of today, or a day. before: a text in front of it. */
export function When({ at, before = "" }: { at: string; before?: string }) {
  const { intl } = useLocalization();
  const [time, now] = [new Date(at), new Date()];
  const sameYear = time.getFullYear() === now.getFullYear();
  const text =
    time.toDateString() === now.toDateString()
      ? intl.formatTime(time, { timeStyle: "short" })
      : intl.formatDate(time, { day: "numeric", month: "short", ...(sameYear ? {} : { year: "numeric" }) });
  return (
    <time dateTime={at} className="ms-auto shrink-0 ps-3 text-xs text-soft">
      {before}
      {text}
    </time>
  );
}

interface ItemProps {
  icon: IconName;
  keys?: string | undefined;
  /** The unique value of the item: texts need not be unique. */
  value: string;
  onSelect: () => void;
  children: ReactNode;
}

export function Item({ icon, keys, children, ...rest }: ItemProps) {
  return (
    <Command.Item
      className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm data-[selected=true]:bg-hover pointer-coarse:min-h-11"
      {...rest}
    >
      <Icon name={icon} size={16} />
      {children}
      {keys !== undefined && (
        <kbd dir="ltr" className="ms-auto ps-4 font-sans text-xs text-faint">
          {keys}
        </kbd>
      )}
    </Command.Item>
  );
}
