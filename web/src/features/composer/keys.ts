// Maps keys pressed in the composer to actions. Pure functions.
import type { SendKey } from "../../keys/send-modes";

export interface Pressed {
  key: string;
  keyCode: number;
  isComposing: boolean;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** send: the default way to send. other: the second way during a live turn. edit-last: edit the last message. */
export type KeyAction = "send" | "other" | "edit-last" | null;

export function actionOf(pressed: Pressed, sendKey: SendKey, empty: boolean): KeyAction {
  // An input method is composing. Safari marks the last Enter only by keyCode 229, after the composition has ended.
  if (pressed.isComposing || pressed.keyCode === 229 || pressed.altKey) return null;
  const mod = pressed.ctrlKey || pressed.metaKey;
  if (pressed.key === "ArrowUp" && empty && !mod && !pressed.shiftKey) return "edit-last";
  if (pressed.key !== "Enter") return null;
  if (sendKey === "enter") return pressed.shiftKey ? null : mod ? "other" : "send";
  if (!mod) return null;
  return pressed.shiftKey ? "other" : "send";
}
