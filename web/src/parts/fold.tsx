// A line that opens to what it stands for. Opening it never moves what is above.
import { useId, useState, type ReactNode } from "react";
import { Icon } from "../controls/icon";

interface FoldProps {
  /** What stands in the line before its words. */
  mark: ReactNode;
  words: ReactNode;
  /** What stands behind them, as a time. */
  aside?: ReactNode;
  children: ReactNode;
}

export function Fold({ mark, words, aside, children }: FoldProps) {
  const [open, setOpen] = useState(false);
  const inside = useId();
  return (
    <div className="my-1.5 text-sm">
      <button type="button" aria-expanded={open} aria-controls={open ? inside : undefined} onClick={() => setOpen(!open)} className="group/fold -ms-2 inline-flex min-h-8 max-w-full items-center gap-2 rounded-md px-2 text-start text-soft hover:bg-hover hover:text-ink pointer-coarse:min-h-11">
        {mark}
        <span className="flex min-w-0 items-baseline gap-2">{words}</span>
        {aside}
        <span className={`text-faint transition-transform ${open ? "rotate-180" : ""}`}>
          <Icon name="chevronDown" size={14} />
        </span>
      </button>
      {open && (
        <div id={inside} className="mt-1 mb-3 ms-1.5 border-s border-line ps-4">
          {children}
        </div>
      )}
    </div>
  );
}
