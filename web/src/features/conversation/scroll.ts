// Computes the scroll position of a transcript while it grows. Pure; use-scroll.ts applies it.

export interface Metrics {
  /** The scroll position, in pixels. */
  top: number;
  /** The height of the visible area, in pixels. */
  viewHeight: number;
  /** The height of the whole content, in pixels. */
  contentHeight: number;
}

/** The distance from the end, in pixels, that still counts as the end. */
export const endTolerance = 48;

export function isAtEnd({ top, viewHeight: view, contentHeight: whole }: Metrics): boolean {
  return whole - view - top <= endTolerance;
}

/**
 * Reports whether the view follows the end after a scroll. It starts to follow when it reaches the end and stops when
 * the reader scrolls up. Growth of the content alone changes nothing, although it moves the end away.
 */
export function followsAfter(followed: boolean, before: number, now: Metrics): boolean {
  if (isAtEnd(now)) return true;
  return followed && now.top >= before - 1;
}

/** An element that keeps its position on the screen while other elements change their height. */
export interface Anchor {
  key: string;
  /** The distance of its top from the top of the visible area, in pixels. */
  offset: number;
}

/** Returns how far to scroll, in pixels, to return an anchor to its offset; 0: it is missing or has not moved. */
export function correction(anchor: Anchor | null, offset: number | null): number {
  if (anchor === null || offset === null) return 0;
  const moved = offset - anchor.offset;
  return Math.abs(moved) < 1 ? 0 : moved;
}

/**
 * Returns the height of the empty space below the last row with which the last user message can be at the top of the
 * visible area. The space shrinks as the answer grows.
 */
export function spacerHeight(view: number, fromQuestionToEnd: number): number {
  return Math.max(0, Math.floor(view - fromQuestionToEnd));
}

/** Reports whether to request older messages: less than twice the height of the visible area is left above it. */
export function shouldLoadOlder({ top, viewHeight: view }: Metrics): boolean {
  return top < view * 2;
}
