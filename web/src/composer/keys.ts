// Maps keys pressed in the composer to actions. Pure functions.
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

/** What sends: Enter, Mod+Enter, or (on a touch screen, where Enter adds a line) the button and Mod+Enter. */
export type SendKey = "enter" | "mod_enter" | "button";

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

/** The ways to send a message during a live turn. */
export type SendMode = "queue" | "steer" | "interrupt";

/** The way to send of the second key combination: steer, or queue if the default is steer. */
export function secondMode(verb: SendMode): SendMode {
  return verb === "steer" ? "queue" : "steer";
}
