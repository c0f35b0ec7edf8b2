// What reaches the composer from outside of it: keys, focus, texts, refusals that concern the field.
import { useEffect, useRef, useState, type RefObject } from "react";
import { discardOutgoing, useLetters, type Trouble } from "../api/outbox";
import { draftBack } from "./drafts";
import { useWishes } from "./wishes";

/** Escape stops, wherever the focus is, unless something else takes it: a dialog, a menu, another field. */
export function useEscape(field: RefObject<HTMLTextAreaElement | null>, stop: () => void): void {
  const latest = useRef(stop);
  latest.current = stop;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
      const target = event.target instanceof HTMLElement ? event.target : null;
      const elsewhere = target !== field.current && target?.matches("input, textarea, select, [contenteditable]") === true;
      if (elsewhere || document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null) return;
      latest.current();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [field]);
}

/** The field has the focus when a room opens, where that does not bring a keyboard up, and when somebody wishes it. */
export function useFocus(field: RefObject<HTMLTextAreaElement | null>): void {
  const wished = useWishes(({ focus }) => focus);
  const before = useRef(wished);
  useEffect(() => {
    const nobody = document.activeElement === null || document.activeElement === document.body;
    if (wished !== before.current || (nobody && matchMedia("(hover: hover)").matches)) field.current?.focus();
    before.current = wished;
  }, [field, wished]);
}

/** Takes in what somebody wishes to stand here. */
export function useWishedText(id: string): void {
  const wish = useWishes(({ text }) => (text?.conversationID === id ? text : null));
  useEffect(() => {
    if (wish === null) return;
    useWishes.setState({ text: null });
    draftBack(id, wish.text);
  }, [id, wish]);
}

const ofTheField = [400, 413, 415, 422];

/** A message that was refused for what it says comes back into the field, if that is free. Why: until the text is changed. */
export function useReturned(id: string, text: string): [Trouble | null, () => void] {
  const [refused, setRefused] = useState<Trouble | null>(null);
  const letter = useLetters(({ list }) => list.find((one) => one.conversationID === id && one.state === "refused" && one.branch === undefined && ofTheField.includes(one.trouble?.status ?? 0)));
  const free = text === "";
  useEffect(() => {
    if (letter === undefined || !free) return;
    setRefused(letter.trouble);
    draftBack(id, discardOutgoing(letter.key));
  }, [id, letter, free]);
  return [refused, () => setRefused(null)];
}
