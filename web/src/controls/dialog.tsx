// A dialog in front of the room: focus stays in it and returns to where it was.
import { Dialog as Radix } from "radix-ui";
import { useState, type ReactNode } from "react";
import { IconButton } from "./button";
import { useSpeech } from "../words/speech";

interface DialogProps {
  title: string;
  /** What it is about, for who hears it; shown too. */
  description?: string | undefined;
  /** Absent: it cannot be put away without an answer. */
  onClose?: (() => void) | undefined;
  /** Where focus goes afterwards, when what had it before is no longer there, as an item of a menu. */
  returnTo?: (() => HTMLElement | null | undefined) | undefined;
  children: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, description, onClose, returnTo, children, wide = false }: DialogProps) {
  const { say } = useSpeech();
  // Radix knows the way back to a button of its own only.
  const [before] = useState(() => document.activeElement);
  const goBack = (event: Event) => {
    event.preventDefault();
    const element = returnTo?.() ?? before;
    if (element instanceof HTMLElement) element.focus();
  };
  return (
    <Radix.Root open onOpenChange={(open) => open || onClose?.()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Radix.Content
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
          onCloseAutoFocus={goBack}
          {...(onClose === undefined ? { onEscapeKeyDown: stay, onPointerDownOutside: stay, onInteractOutside: stay } : {})}
          className={`fixed inset-0 z-50 m-auto flex h-fit max-h-[90dvh] w-[min(calc(100vw-2rem),var(--dialog))] flex-col gap-4 overflow-y-auto rounded-lg border border-line bg-raised p-5 shadow-float outline-none ${wide ? "[--dialog:44rem]" : "[--dialog:28rem]"}`}
        >
          <div className="flex items-start justify-between gap-4">
            <div className="min-w-0">
              <Radix.Title className="text-lg font-semibold wrap-anywhere">{title}</Radix.Title>
              {description !== undefined && <Radix.Description className="mt-1 text-sm text-soft">{description}</Radix.Description>}
            </div>
            {onClose !== undefined && <IconButton icon="close" label={say("close")} onClick={onClose} className="-me-1.5 -mt-1.5" />}
          </div>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function stay(event: Event): void {
  event.preventDefault();
}
