// Whether something is near to what is looked at: work and elements that only then are needed wait for it.
import { useEffect, useState, useSyncExternalStore, type RefObject } from "react";
import { flushSync } from "react-dom";

/** How far from the window counts as near. Older browsers do not know scrollMargin: there it is what is in sight. */
const distance = { rootMargin: "800px", scrollMargin: "800px" };

const waiting = new WeakMap<Element, (near: boolean) => void>();
let eye: IntersectionObserver | null = null;

function watch(element: Element, tell: (near: boolean) => void): () => void {
  eye ??= new IntersectionObserver((entries) => entries.forEach((entry) => waiting.get(entry.target)?.(entry.isIntersecting)), distance);
  waiting.set(element, tell);
  eye.observe(element);
  return () => {
    waiting.delete(element);
    eye?.unobserve(element);
  };
}

/** Whether the element is near; stay: whether it counts as near for good once it was. */
export function useNear(element: RefObject<Element | null>, stay: boolean): boolean {
  const [near, setNear] = useState(false);
  const done = near && stay;
  useEffect(() => (done || element.current === null ? undefined : watch(element.current, setNear)), [element, done]);
  return near;
}

/** Whether the focus is moved by the Tab key. */
let tabbing = false;
const reachable = new Set<() => void>();

// In the page before the key moves the focus, which passes over what is not there.
function beginTabbing(event: KeyboardEvent) {
  if (event.key !== "Tab") return;
  removeEventListener("keydown", beginTabbing, true);
  tabbing = true;
  flushSync(() => reachable.forEach((changed) => changed()));
}

function subscribe(changed: () => void): () => void {
  if (!tabbing) addEventListener("keydown", beginTabbing, true);
  reachable.add(changed);
  return () => void reachable.delete(changed);
}

/** Whether something that can have the focus has to be in the page: near to what is looked at, or anywhere once the Tab key is used. */
export function useReachable(element: RefObject<Element | null>): boolean {
  const near = useNear(element, false);
  return useSyncExternalStore(subscribe, () => tabbing) || near;
}
