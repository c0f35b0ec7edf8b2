// The number of a citation, which opens a card with its source: while the pointer is on it or it has the keyboard focus, and
// when it is pressed, which also moves the focus into the card.
import { Popover } from "radix-ui";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { citationChip } from "./citation-number";

/** Milliseconds that the pointer rests on the number, or is away from both, before something happens. */
const hoverDelay = 200;

interface CitationCardProps {
  number: number;
  /** The name of the number and of the card. */
  label: string;
  /** The content of the card, rendered while it is open. */
  children: ReactNode;
}

export function CitationCard({ number, label, children }: CitationCardProps) {
  const [open, setOpen] = useState(false);
  /** Whether it was opened by a press, so that it stays when the pointer leaves. */
  const pressed = useRef(false);
  const timer = useRef(0);
  /** Whether the focus returns to the number, which opens nothing. */
  const returning = useRef(false);
  const button = useRef<HTMLButtonElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  const later = (wanted: boolean) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => (wanted || !pressed.current) && setOpen(wanted), hoverDelay);
  };
  const change = (wanted: boolean) => {
    clearTimeout(timer.current);
    if (!wanted) pressed.current = false;
    setOpen(wanted);
  };
  const hover = {
    onPointerEnter: ({ pointerType }: React.PointerEvent) => pointerType === "mouse" && later(true),
    onPointerLeave: ({ pointerType }: React.PointerEvent) => pointerType === "mouse" && later(false),
  };
  return (
    <Popover.Root open={open} onOpenChange={change}>
      <Popover.Anchor asChild>
        <button
          ref={button}
          type="button"
          data-citation={number}
          aria-label={label}
          aria-haspopup="dialog"
          aria-expanded={open}
          {...hover}
          onFocus={({ currentTarget }) => !returning.current && currentTarget.matches(":focus-visible") && later(true)}
          onBlur={({ relatedTarget }) =>
            content.current?.contains(relatedTarget) !== true && !pressed.current && change(false)
          }
          onClick={() => {
            if (open && pressed.current) return change(false);
            pressed.current = true;
            change(true);
            requestAnimationFrame(() => content.current?.focus());
          }}
          className={`${citationChip} hover:bg-accent hover:text-accent-ink pointer-coarse:px-1.5 pointer-coarse:py-0.5`}
        >
          {number}
        </button>
      </Popover.Anchor>
      <Popover.Portal>
        <Popover.Content
          ref={content}
          tabIndex={-1}
          aria-label={label}
          side="bottom"
          sideOffset={4}
          collisionPadding={8}
          onOpenAutoFocus={(event) => event.preventDefault()}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            // The number may have been left on purpose.
            if (document.activeElement !== null && document.activeElement !== document.body) return;
            returning.current = true;
            button.current?.focus();
            returning.current = false;
          }}
          onKeyDown={(event) => event.key === "Escape" && event.stopPropagation()}
          {...hover}
          className="z-50 max-h-[min(20rem,60dvh)] w-[min(26rem,calc(100vw-1rem))] overflow-y-auto rounded-md border border-line bg-raised p-3 text-sm shadow-float outline-none"
        >
          {children}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
