// A line that expands to show its details below. Expanding it never moves the content above.
import { useId, useState, type ReactNode } from "react";
import { Icon } from "../controls/icon";

interface DisclosureProps {
  /** Shown before the text of the line: an icon. */
  icon: ReactNode;
  label: ReactNode;
  /** Shown after the text, for example a duration. */
  detail?: ReactNode;
  children: ReactNode;
}

export function Disclosure({ icon, label, detail, children }: DisclosureProps) {
  const [open, setOpen] = useState(false);
  const contentID = useId();
  return (
    <div className="my-1.5 text-sm">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? contentID : undefined}
        onClick={() => setOpen(!open)}
        className="group/fold -ms-2 inline-flex min-h-8 max-w-full items-center gap-2 rounded-md px-2 text-start text-soft hover:bg-hover hover:text-ink pointer-coarse:min-h-11"
      >
        {icon}
        <span className="flex min-w-0 items-baseline gap-2">{label}</span>
        {detail}
        <span className={`text-faint transition-transform ${open ? "rotate-180" : ""}`}>
          <Icon name="chevronDown" size={14} />
        </span>
      </button>
      {open && (
        <div id={contentID} data-details="" className="mt-1 mb-3 ms-1.5 border-s border-line ps-4">
          {children}
        </div>
      )}
    </div>
  );
}
