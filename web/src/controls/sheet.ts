// The swipe that closes a sheet at the lower edge of the window.

/** The length in pixels from which a swipe closes; of a low sheet, a third of its height is enough. */
const longestNeeded = 96;

/** Lets the sheet follow a finger that moves down, and calls close when it is lifted far enough from where it began. */
export function closeOnSwipe(sheet: HTMLElement, close: () => void): () => void {
  let start: Touch | null = null;
  let moved = 0;
  const show = (distance: number) => {
    moved = distance;
    sheet.style.translate = distance > 0 ? `0 ${distance}px` : "";
  };
  const begin = ({ touches }: TouchEvent) => {
    // Otherwise the finger scrolls the items.
    start = touches.length === 1 && sheet.scrollTop <= 0 ? touches[0]! : null;
  };
  const move = (event: TouchEvent) => {
    const touch = event.touches[0];
    if (start === null || touch === undefined) return;
    const down = touch.clientY - start.clientY;
    if (down <= 0 && moved === 0) return void (sheet.scrollTop > 0 && (start = null));
    event.preventDefault();
    show(Math.max(down, 0));
  };
  const end = ({ type }: TouchEvent) => {
    start = null;
    if (type === "touchend" && moved >= Math.min(longestNeeded, sheet.offsetHeight / 3)) close();
    else show(0);
  };
  sheet.addEventListener("touchstart", begin, { passive: true });
  sheet.addEventListener("touchmove", move, { passive: false });
  sheet.addEventListener("touchend", end);
  sheet.addEventListener("touchcancel", end);
  return () => {
    sheet.removeEventListener("touchstart", begin);
    sheet.removeEventListener("touchmove", move);
    sheet.removeEventListener("touchend", end);
    sheet.removeEventListener("touchcancel", end);
  };
}
