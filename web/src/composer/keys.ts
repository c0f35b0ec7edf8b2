// What a key does in the field where one writes. Pure.
export interface Pressed {
  key: string;
  keyCode: number;
  isComposing: boolean;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** send: what sending does by default. other: what Mod and the same key do while an answer is written. */
export type KeyAction = "send" | "other" | "edit-last" | null;

/** Where a line is longer than the keyboard (a touch screen), the sending key makes lines; the button sends. */
export type SendKey = "enter" | "mod_enter" | "button";

export function actionOf(pressed: Pressed, sendKey: SendKey, empty: boolean): KeyAction {
  // An input method is choosing words. Safari says so of its last Enter by the code alone, after the composition has ended.
  if (pressed.isComposing || pressed.keyCode === 229 || pressed.altKey) return null;
  const mod = pressed.ctrlKey || pressed.metaKey;
  if (pressed.key === "ArrowUp" && empty && !mod && !pressed.shiftKey) return "edit-last";
  if (pressed.key !== "Enter") return null;
  if (sendKey === "enter") return pressed.shiftKey ? null : mod ? "other" : "send";
  if (!mod) return null;
  return pressed.shiftKey ? "other" : "send";
}

/** What a message does while an answer is being written. */
export type Verb = "queue" | "steer" | "interrupt";

/** What the other key does: steers, unless that is what the first one does. */
export function otherThan(verb: Verb): Verb {
  return verb === "steer" ? "queue" : "steer";
}
