// The word at the caret that opens a list, and the keys of that list.
import { useEffect, useEffectEvent, useRef, useState, type RefObject } from "react";
import type { FindMention, Mention } from "./mention";

/** The word that is found at the caret, from when it is typed until it is left, or closed with Escape. */
export function useMention(
  field: RefObject<HTMLTextAreaElement | null>,
  find: FindMention,
): { mention: Mention | null; close: () => void } {
  const [mention, setMention] = useState<Mention | null>(null);
  const closedAt = useRef<number | null>(null);
  const update = useEffectEvent((typed: boolean) => {
    const area = field.current;
    if (area === null || (!typed && mention === null)) return;
    const found = find(area.value, area.selectionStart, area.selectionEnd);
    if (found?.start !== closedAt.current) closedAt.current = null;
    const same = typed || found?.start === mention?.start;
    setMention(closedAt.current === null && same && document.activeElement === area ? found : null);
  });
  useEffect(() => {
    const area = field.current;
    if (area === null) return;
    const typed = () => update(true);
    const left = () => update(false);
    typed();
    area.addEventListener("input", typed);
    area.addEventListener("blur", left);
    document.addEventListener("selectionchange", left);
    return () => {
      area.removeEventListener("input", typed);
      area.removeEventListener("blur", left);
      document.removeEventListener("selectionchange", left);
    };
  }, [field]);
  const close = () => {
    closedAt.current = mention?.start ?? null;
    setMention(null);
  };
  return { mention, close };
}

/** Handles the keys of the open list before the field does, except those of an input method. */
export function useKeys(
  field: RefObject<HTMLTextAreaElement | null>,
  open: boolean,
  press: (key: string) => boolean,
): void {
  const handle = useEffectEvent((event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || !press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  useEffect(() => {
    const area = field.current;
    if (area === null || !open) return;
    const pressed = (event: KeyboardEvent) => handle(event);
    area.addEventListener("keydown", pressed);
    return () => area.removeEventListener("keydown", pressed);
  }, [field, open]);
}
