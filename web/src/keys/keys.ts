// The keyboard shortcuts of the app in one table, which the listener, the help sheet and the tests use.
import { create } from "zustand";
import type { MessageKey } from "../messages/catalog";

export type Action = "palette" | "new" | "shortcuts" | "sidebar" | "code" | "next" | "previous";

export interface Shortcut {
  /** For example "Mod+Shift+O"; Mod is ⌘ on a Mac and Ctrl elsewhere. */
  keys: string;
  message: MessageKey;
}

export const shortcuts: Readonly<Record<Action, Shortcut>> = {
  palette: { keys: "Mod+K", message: "pages.keys.palette" },
  new: { keys: "Mod+Shift+O", message: "pages.keys.new" },
  sidebar: { keys: "Mod+Shift+S", message: "pages.keys.sidebar" },
  code: { keys: "Mod+Shift+C", message: "pages.keys.code" },
  shortcuts: { keys: "Mod+/", message: "pages.keys.shortcuts" },
  next: { keys: "J", message: "pages.keys.next" },
  previous: { keys: "K", message: "pages.keys.previous" },
};

/** The single-letter shortcuts. They can be switched off, and do not apply in text fields (WCAG 2.1.4). */
export const letterShortcuts: readonly Action[] = ["next", "previous"];

export type Pressed = Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

/** Returns the pressed key: its Latin letter or its sign, or its position if it writes another letter. */
export function keyOf({ key, code }: Pick<Pressed, "key" | "code">): string {
  return /^[a-z]$/i.test(key) || !/^\p{L}$/u.test(key) ? key.toUpperCase() : code.replace(/^Key/, "");
}

/** Returns the pressed shortcut; null: none. */
export function shortcutOf(event: Pressed, mac: boolean): Action | null {
  if (event.altKey || (mac ? event.ctrlKey : event.metaKey)) return null;
  const mod = mac ? event.metaKey : event.ctrlKey;
  const key = keyOf(event);
  for (const [action, { keys }] of Object.entries(shortcuts) as [Action, Shortcut][]) {
    const parts = keys.split("+");
    const wanted = parts.at(-1)!;
    // Some keyboard layouts need Shift for a sign.
    const shift = parts.includes("Shift") === event.shiftKey || !/^[A-Z]$/.test(wanted);
    if (wanted === key && parts.includes("Mod") === mod && shift) return action;
  }
  return null;
}

const signs: readonly [string, string][] = [
  ["Mod", "⌘"],
  ["Shift", "⇧"],
  ["Alt", "⌥"],
  ["Enter", "↩"],
];

/** Formats keys for the platform: "⇧⌘O" or "Ctrl+Shift+O". */
export function formatKeys(keys: string, mac: boolean): string {
  const parts = keys.split("+");
  if (!mac) return parts.map((part) => (part === "Mod" ? "Ctrl" : part)).join("+");
  const order = ["Alt", "Shift", "Mod"];
  const sorted = parts.toSorted((a, b) => (order.indexOf(a) + 1 || 9) - (order.indexOf(b) + 1 || 9));
  return sorted.map((part) => signs.find(([name]) => name === part)?.[1] ?? part).join("");
}

/** Whether the device is from Apple, whose keys have other labels. */
export const onMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

export const keysOf = (action: Action): string => formatKeys(shortcuts[action].keys, onMac);

/** The latest requested action and the number of requests. layout/shortcuts.tsx executes the action. */
export const useRequestedAction = create<{ action: Action | null; count: number }>(() => ({ action: null, count: 0 }));

export const requestAction = (action: Action): void =>
  useRequestedAction.setState(({ count }) => ({ action, count: count + 1 }));
