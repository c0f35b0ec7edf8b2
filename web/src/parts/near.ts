// Reports whether an element is near the visible area, so that work and elements needed only there can be deferred.
import { useEffect, useState, useSyncExternalStore, type RefObject } from "react";
import { flushSync } from "react-dom";

/** The distance that counts as near. In older browsers without scrollMargin, only visible elements count as near. */
const distance = { rootMargin: "800px", scrollMargin: "800px" };

const callbacks = new WeakMap<Element, (near: boolean) => void>();
let observer: IntersectionObserver | null = null;

function watch(element: Element, report: (near: boolean) => void): () => void {
  observer ??= new IntersectionObserver(
    (entries) => entries.forEach((entry) => callbacks.get(entry.target)?.(entry.isIntersecting)),
    distance,
  );
  callbacks.set(element, report);
  observer.observe(element);
  return () => {
    callbacks.delete(element);
    observer?.unobserve(element);
  };
}

/** Reports whether the element is near the visible area. stay: once it was near, it counts as near permanently. */
export function useNear(element: RefObject<Element | null>, stay: boolean): boolean {
  const [near, setNear] = useState(false);
  const done = near && stay;
  useEffect(() => (done || element.current === null ? undefined : watch(element.current, setNear)), [element, done]);
  return near;
}

/** Whether the Tab key has been used on this page. */
let tabKeyUsed = false;
const tabKeyListeners = new Set<() => void>();

// Renders synchronously, before the key moves the focus: the focus skips elements that are not in the document.
function noteTabKey(event: KeyboardEvent) {
  if (event.key !== "Tab") return;
  removeEventListener("keydown", noteTabKey, true);
  tabKeyUsed = true;
  flushSync(() => tabKeyListeners.forEach((changed) => changed()));
}

function subscribe(changed: () => void): () => void {
  if (!tabKeyUsed) addEventListener("keydown", noteTabKey, true);
  tabKeyListeners.add(changed);
  return () => void tabKeyListeners.delete(changed);
}

/**
 * Reports whether focusable elements must be in the document: if they are near the visible area, or everywhere once the
 * Tab key has been used.
 */
export function useRendersFocusable(element: RefObject<Element | null>): boolean {
  const near = useNear(element, false);
  return useSyncExternalStore(subscribe, () => tabKeyUsed) || near;
}
