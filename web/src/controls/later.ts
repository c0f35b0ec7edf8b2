// When what the first page can do without is loaded: after that page is shown, because both would share the network and the
// processor.
import { useEffect } from "react";
import { create } from "zustand";

/** The longest wait for the first page in milliseconds: it may show nothing, for example without a network, or may be hidden. */
const longestWait = 5_000;

const useLoads = create<{ later: boolean }>(() => ({ later: false }));

/** Loads now what waits for the first page, because the user needs it. */
export function loadLater(): void {
  if (!useLoads.getState().later) useLoads.setState({ later: true });
}

/** Returns whether to render what the first page can do without. It stays true. */
export const useLater = (): boolean => useLoads(({ later }) => later);

/** Calls load when what the first page can do without is to be loaded. */
export const onLater = (load: () => void): void => void useLoads.subscribe(load);

/** Notes that a component is shown for which the user has opened the page; unless shown is false. */
export function useNoteShown(shown = true): void {
  useEffect(() => {
    if (!shown) return;
    const frame = requestAnimationFrame(() => setTimeout(loadLater)); // after it was painted
    return () => cancelAnimationFrame(frame);
  }, [shown]);
}

/** Starts to wait for the first page. Files that are dragged over it are dropped on what is loaded later. */
export function startLater(): void {
  setTimeout(loadLater, longestWait);
  addEventListener("dragenter", loadLater, { once: true });
}
