// The shortcuts of the app, in one table: what listens, what shows them and what tests them read it.
import { create } from "zustand";
import type { Word } from "../words/words";

export type Action = "palette" | "new" | "shortcuts" | "sidebar" | "code" | "next" | "previous";

export interface Shortcut {
  /** As "Mod+Shift+O"; Mod is ⌘ on a Mac and Ctrl elsewhere. */
  keys: string;
  word: Word;
}

export const shortcuts: Readonly<Record<Action, Shortcut>> = {
  palette: { keys: "Mod+K", word: "rooms.keys.palette" },
  new: { keys: "Mod+Shift+O", word: "rooms.keys.new" },
  sidebar: { keys: "Mod+Shift+S", word: "rooms.keys.sidebar" },
  code: { keys: "Mod+Shift+C", word: "rooms.keys.code" },
  shortcuts: { keys: "Mod+/", word: "rooms.keys.shortcuts" },
  next: { keys: "J", word: "rooms.keys.next" },
  previous: { keys: "K", word: "rooms.keys.previous" },
};

/** Letters alone: they can be switched off, and are none while one writes (WCAG 2.1.4). */
export const letters: readonly Action[] = ["next", "previous"];

export type Pressed = Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

/** Which shortcut was pressed. Letters go by what the key writes; where that is no Latin letter, by its place. */
export function pressed(event: Pressed, mac: boolean): Action | null {
  if (event.altKey || (mac ? event.ctrlKey : event.metaKey)) return null;
  const mod = mac ? event.metaKey : event.ctrlKey;
  const key = /^[a-z]$/i.test(event.key) || !/^\p{L}$/u.test(event.key) ? event.key.toUpperCase() : event.code.replace(/^Key/, "");
  for (const [action, { keys }] of Object.entries(shortcuts) as [Action, Shortcut][]) {
    const parts = keys.split("+");
    const wanted = parts.at(-1)!;
    const shift = parts.includes("Shift") === event.shiftKey || !/^[A-Z]$/.test(wanted); // signs are where Shift puts them
    if (wanted === key && parts.includes("Mod") === mod && shift) return action;
  }
  return null;
}

const signs: readonly [string, string][] = [["Mod", "⌘"], ["Shift", "⇧"], ["Alt", "⌥"], ["Enter", "↩"]];

/** Keys as the platform writes them: "⇧⌘O" or "Ctrl+Shift+O". */
export function shown(keys: string, mac: boolean): string {
  const parts = keys.split("+");
  if (!mac) return parts.map((part) => (part === "Mod" ? "Ctrl" : part)).join("+");
  const order = ["Alt", "Shift", "Mod"];
  const sorted = parts.toSorted((a, b) => (order.indexOf(a) + 1 || 9) - (order.indexOf(b) + 1 || 9));
  return sorted.map((part) => signs.find(([name]) => name === part)?.[1] ?? part).join("");
}

/** As the keys of Apple's devices are labelled. */
export const onMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

export const keysOf = (action: Action): string => shown(shortcuts[action].keys, onMac);

/** What is asked for by a key, a button or the palette; the frame does it. */
export const useAsked = create<{ action: Action | null; count: number }>(() => ({ action: null, count: 0 }));

export const act = (action: Action): void => useAsked.setState(({ count }) => ({ action, count: count + 1 }));
