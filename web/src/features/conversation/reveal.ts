// Brings a position of the transcript into view. Rows that come into view are measured, which moves the position, so a
// caller repeats this in every frame until the position has been visible for some frames.

/** The most frames in which a position is brought into view. */
export const maxAttempts = 60;

/** The number of frames in a row after which a visible position counts as settled. */
export const steadyFrames = 3;

/** The space in pixels at the top of the view that the find bar covers. */
const barHeight = 96;

/** Reports whether a position is visible; otherwise scrolls to it. */
export function isShown(view: Element, target: DOMRect): boolean {
  const { top, bottom, height } = view.getBoundingClientRect();
  if (target.top >= top + barHeight && target.top <= bottom - 48) return true;
  const before = view.scrollTop;
  scrollTo(view, view.scrollTop + target.top - top - height / 3);
  return view.scrollTop === before; // at the beginning or the end of the transcript
}

/**
 * Scrolls, and reports it at once: the event of the browser follows later, and rows that are added before it would be
 * laid out around the position before.
 */
export function scrollTo(view: Element, top: number): void {
  view.scrollTop = top;
  view.dispatchEvent(new Event("scroll"));
}
