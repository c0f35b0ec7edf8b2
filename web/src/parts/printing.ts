// Whether the page is being printed: everything is rendered then, also what is folded or far from the visible area.
import { useSyncExternalStore } from "react";
import { flushSync } from "react-dom";

let printing = false;
const listeners = new Set<() => void>();

// Synchronously, before the browser takes the page.
function set(value: boolean): void {
  printing = value;
  flushSync(() => listeners.forEach((changed) => changed()));
}

const before = () => set(true);
const after = () => set(false);

function subscribe(changed: () => void): () => void {
  addEventListener("beforeprint", before); // once, however often it is added
  addEventListener("afterprint", after);
  listeners.add(changed);
  return () => void listeners.delete(changed);
}

export const usePrinting = (): boolean =>
  useSyncExternalStore(
    subscribe,
    () => printing,
    () => false,
  );
