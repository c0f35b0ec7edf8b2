// Loads what follows long presses, on devices with a touch screen.
import { useEffect, type RefObject } from "react";

export function useLongPress(content: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    if (content.current === null || !matchMedia("(pointer: coarse)").matches) return;
    const element = content.current;
    let stop: (() => void) | null = null;
    let current = true;
    import("./long-press").then(
      ({ openMenusByLongPress }) => current && (stop = openMenusByLongPress(element)),
      () => {}, // loading failed: the menus have their buttons
    );
    return () => {
      current = false;
      stop?.();
    };
  }, [content]);
}
