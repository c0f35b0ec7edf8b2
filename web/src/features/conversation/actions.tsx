// The action buttons of a message, visible while the pointer is over the message or the focus is inside it.
import { useRef, useState, type ReactNode } from "react";
import { Refusal } from "../../api/client";
import { IconButton } from "../../controls/button";
import { loadable } from "../../controls/loadable";
import { Menu } from "../../controls/menu";
import { toast } from "../../controls/toast";
import type { Message } from "../../generated/events";
import { useRendersFocusable } from "../../parts/near";
import { useLocalization } from "../../messages/localization";
import { showBranch } from "./siblings";
import { useConversationContext } from "./conversation-context";
import { PromptDialog } from "../prompts";
import type { MessageItemsProps } from "./message-items";

const items = loadable(() => import("./message-items"));

/** Rendered only in an open menu, so the module is loaded. */
const MessageItems = (props: MessageItemsProps) => items.value && <items.value.MessageItems {...props} />;

/** The menu of a message. Its button is there at once, and opens the menu when the items are loaded. */
export function MessageMenu(props: Pick<MessageItemsProps, "message" | "onRegenerate">) {
  const { t } = useLocalization();
  const trigger = useRef<HTMLButtonElement>(null);
  /** The text that is to become a prompt. */
  const [prompt, setPrompt] = useState<string | null>(null);
  // What an item does once the menu is closed, in place of the return of the focus to the button.
  const after = useRef<(() => void) | null>(null);
  const closed = () => {
    const next = after.current;
    after.current = null;
    next?.();
    return next !== null;
  };
  return (
    <>
      <Menu
        trigger={
          <IconButton ref={trigger} data-message-menu="" size="small" icon="dots" label={t("transcript.menu")} />
        }
        load={items.load}
        onClosed={closed}
      >
        <MessageItems {...props} onceClosed={(next) => void (after.current = next)} onSavePrompt={setPrompt} />
      </Menu>
      {prompt !== null && (
        <PromptDialog
          prompt={null}
          project={null}
          text={prompt}
          onClose={() => setPrompt(null)}
          returnTo={() => trigger.current}
        />
      )}
    </>
  );
}

interface ActionsProps {
  /** Whether they are visible without pointer or focus. */
  always: boolean;
  /** Whether they overlap the lower edge of the message, at its end; on touch screens they are below it. */
  overlay?: boolean;
  children: () => ReactNode;
}

/** A row of action buttons. Far from the visible area only the empty row is rendered, until the Tab key is used. */
export function Actions({ always, overlay = false, children }: ActionsProps) {
  const { t } = useLocalization();
  const row = useRef<HTMLDivElement>(null);
  const near = useRendersFocusable(row);
  const hidden = always
    ? ""
    : "pointer-events-none opacity-0 group-focus-within/row:pointer-events-auto group-focus-within/row:opacity-100 group-hover/row:pointer-events-auto group-hover/row:opacity-100 pointer-coarse:pointer-events-auto pointer-coarse:opacity-100";
  const place = overlay
    ? "absolute end-3 top-full z-10 -mt-2.5 min-h-7 rounded-md bg-raised shadow-float pointer-coarse:static pointer-coarse:min-h-10 pointer-coarse:bg-transparent pointer-coarse:shadow-none"
    : "mt-1 -ms-1.5 min-h-8 flex-wrap";
  return (
    <div
      ref={row}
      role="group"
      aria-label={t("transcript.actions")}
      className={`flex select-none items-center gap-0.5 text-xs text-faint transition-opacity print:hidden ${place} ${hidden}`}
    >
      {near && children()}
    </div>
  );
}

/** The time of a message: that of the day, and in full on hover and for screen readers. */
export function SentAt({ at }: { at: string }) {
  const { intl } = useLocalization();
  const full = intl.formatDate(at, { dateStyle: "full", timeStyle: "short" });
  return (
    <time dateTime={at} title={full} className="relative px-1.5 whitespace-nowrap">
      <span aria-hidden="true">{intl.formatTime(at, { timeStyle: "short" })}</span>
      <span className="sr-only">{full}</span>
    </time>
  );
}

/** Switches between the versions of a message. */
export function Siblings({ message }: { message: Message }) {
  const { t, intl } = useLocalization();
  const { id, busy, scroll } = useConversationContext();
  const pending = useRef(false); // in place of disabled buttons, which would lose the focus
  const { sibling_index: at, sibling_count: count, previous_sibling: before, next_sibling: after } = message;
  if (count < 2) return null;
  const show = async (sibling: Message["next_sibling"]) => {
    if (sibling === undefined || pending.current) return;
    pending.current = true;
    scroll.hold(message.parent_message_id ?? "first");
    try {
      await showBranch(id, sibling.branch_id);
    } catch (refusal) {
      toast(
        t(
          refusal instanceof Refusal && refusal.code === "turn_in_progress"
            ? "transcript.version_busy"
            : "transcript.version_refused",
        ),
        { kind: "problem" },
      );
    } finally {
      pending.current = false;
    }
  };
  return (
    <span role="group" aria-label={t("transcript.versions")} className="flex items-center">
      <IconButton
        size="small"
        icon="chevronLeft"
        mirrored
        label={t("transcript.version_before")}
        disabled={before === undefined || busy}
        onClick={() => void show(before)}
      />
      <span className="px-0.5 tabular-nums">
        <span aria-hidden="true">{`${intl.formatNumber(at + 1)}/${intl.formatNumber(count)}`}</span>
        <span className="sr-only">{t("transcript.version_of", { at: at + 1, count })}</span>
      </span>
      <IconButton
        size="small"
        icon="chevronRight"
        mirrored
        label={t("transcript.version_after")}
        disabled={after === undefined || busy}
        onClick={() => void show(after)}
      />
    </span>
  );
}
