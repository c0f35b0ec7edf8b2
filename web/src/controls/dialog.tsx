// A modal dialog: focus stays in it, and returns to the previous element when it closes. A press outside closes it, unless the user has
// written a text in it, which would be lost.
import { Dialog as Radix } from "radix-ui";
import { useRef, useState, type ReactNode } from "react";
import { IconButton } from "./button";
import { useCloseOnBack } from "./close-on-back";
import { useLocalization } from "../messages/localization";

interface DialogProps {
  title: string;
  /** The visible description, which screen readers announce with the title. */
  description?: string | undefined;
  /** Closes the dialog; absent: the dialog cannot be dismissed. */
  onClose?: (() => void) | undefined;
  /** Returns the element to focus after closing, if the previous one no longer exists (for example a menu item). */
  returnTo?: (() => HTMLElement | null | undefined) | undefined;
  children: ReactNode;
  wide?: boolean;
  /** Whether it is opened from another dialog, which its backdrop then covers. */
  nested?: boolean;
}

export function Dialog({ title, description, onClose, returnTo, children, wide = false, nested = false }: DialogProps) {
  const { t } = useLocalization();
  useCloseOnBack(onClose);
  // Radix returns the focus only to a trigger of its own, and this dialog has none.
  const [before] = useState(() => document.activeElement);
  const written = useRef(false);
  const goBack = (event: Event) => {
    event.preventDefault();
    const element = returnTo?.() ?? before;
    if (element instanceof HTMLElement) element.focus();
  };
  return (
    <Radix.Root open onOpenChange={(open) => open || onClose?.()}>
      <Radix.Portal>
        <Radix.Overlay className={`fixed inset-0 bg-overlay ${nested ? "z-50" : "z-40"}`} />
        <Radix.Content
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
          onOpenAutoFocus={focusContent}
          onCloseAutoFocus={goBack}
          onInput={({ target }) => void (written.current ||= target instanceof HTMLTextAreaElement)}
          onInteractOutside={(event) => (written.current || onClose === undefined) && event.preventDefault()}
          {...(onClose === undefined ? { onEscapeKeyDown: (event) => event.preventDefault() } : {})}
          className={`fixed inset-0 z-50 m-auto flex h-fit max-h-[90dvh] w-[min(calc(100vw-2rem),var(--dialog))] flex-col gap-4 overflow-y-auto rounded-lg border border-line bg-raised p-5 shadow-float outline-none ${wide ? "[--dialog:44rem]" : "[--dialog:28rem]"}`}
        >
          <div className="flex items-start justify-between gap-4">
            <div className="min-w-0">
              <Radix.Title className="text-lg font-semibold wrap-anywhere">{title}</Radix.Title>
              {description !== undefined && (
                <Radix.Description className="mt-1 text-sm text-soft">{description}</Radix.Description>
              )}
            </div>
            {onClose !== undefined && (
              <IconButton icon="close" label={t("close")} onClick={onClose} className="-me-1.5 -mt-1.5" />
            )}
          </div>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/**
 * Focuses the element with data-autofocus, else the dialog, unless an element in it has the focus. It does not focus the
 * first button, which closes the dialog. In a nested dialog, React's autoFocus has no effect: the outer dialog still keeps
 * the focus inside itself when React moves it.
 */
function focusContent(event: Event): void {
  event.preventDefault();
  const content = event.currentTarget as HTMLElement;
  (content.querySelector<HTMLElement>("[data-autofocus]") ?? content).focus();
}
