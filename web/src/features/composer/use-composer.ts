// What the composer handles from outside the field: keys, focus, and refusals of its text.
import { useEffect, useRef, useState, type RefObject } from "react";
import { discardOutgoing, useOutbox, type DeliveryFailure } from "../../api/outbox";
import { onTouchScreen } from "../../controls/media";
import { drafts } from "./page-drafts";
import { useComposerRequests } from "./composer-requests";

/** Escape stops the turn, wherever the focus is, unless a dialog, a menu or another field handles it. */
export function useEscape(field: RefObject<HTMLTextAreaElement | null>, stop: () => void): void {
  const latest = useRef(stop);
  latest.current = stop;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
      const target = event.target instanceof HTMLElement ? event.target : null;
      const elsewhere =
        target !== field.current && target?.matches("input, textarea, select, [contenteditable]") === true;
      if (elsewhere || document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null) return;
      latest.current();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [field]);
}

/**
 * Focuses the field on every request, and when a page opens, except on touch screens. If an element of the previous page
 * still has the focus, it keeps it, unless it is the link that opened this page.
 */
export function useFocus(field: RefObject<HTMLTextAreaElement | null>): void {
  const requested = useComposerRequests(({ focus }) => focus);
  const before = useRef(requested);
  useEffect(() => {
    const focused = document.activeElement;
    const free =
      focused === null ||
      focused === document.body ||
      (focused instanceof HTMLAnchorElement && focused.pathname === location.pathname);
    if (requested !== before.current || (free && !onTouchScreen())) field.current?.focus();
    before.current = requested;
  }, [field, requested]);
}

/** The HTTP statuses that refuse the content of a message. */
const contentStatuses = [400, 413, 415, 422];

/**
 * Moves a message that was refused for its content back into the field, if the field is empty. Returns the reason, and
 * a function that clears it.
 */
export function useRefusedText(id: string, text: string): [DeliveryFailure | null, () => void] {
  const [refused, setRefused] = useState<DeliveryFailure | null>(null);
  const message = useOutbox(({ list }) =>
    list.find(
      (one) =>
        one.conversationID === id &&
        one.state === "refused" &&
        one.branch === undefined &&
        contentStatuses.includes(one.failure?.status ?? 0),
    ),
  );
  const free = text === "";
  useEffect(() => {
    if (message === undefined || !free) return;
    setRefused(message.failure);
    drafts.restoreText(id, discardOutgoing(message.key));
  }, [id, message, free]);
  return [refused, () => setRefused(null)];
}
