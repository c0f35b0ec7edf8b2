// Swipes that open and close the drawer of the sidebar.
import { useEffect } from "react";

/** The width of the strip at the start of the page in which a swipe that opens begins, in pixels. */
const strip = 32;
/** The length from which a movement along the line is a swipe, in pixels. */
const shortest = 56;

/** show opens (true) or closes the drawer; null: nothing is swiped. */
export function useSwipe(show: ((open: boolean) => void) | null): void {
  useEffect(() => {
    if (show === null) return;
    let start: Touch | null = null;
    const begin = ({ touches }: TouchEvent) => void (start = touches.length === 1 ? touches[0]! : null);
    const end = ({ changedTouches: [last] }: TouchEvent) => {
      const first = start;
      start = null;
      if (first === null || last === undefined) return;
      const rightToLeft = document.documentElement.dir === "rtl";
      const [along, across] = [last.clientX - first.clientX, last.clientY - first.clientY];
      if (Math.abs(along) < shortest || Math.abs(along) < 2 * Math.abs(across)) return;
      const opens = rightToLeft ? along < 0 : along > 0;
      const fromEdge = rightToLeft ? window.innerWidth - first.clientX : first.clientX;
      // The page may scroll along the line elsewhere, for example in code.
      if (!opens || fromEdge <= strip) show(opens);
    };
    document.addEventListener("touchstart", begin, { passive: true });
    document.addEventListener("touchend", end, { passive: true });
    return () => {
      document.removeEventListener("touchstart", begin);
      document.removeEventListener("touchend", end);
    };
  }, [show]);
}
