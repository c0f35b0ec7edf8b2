// Where a transcript stands while it grows. Pure; use-scroll.ts does it.

export interface Metrics {
  /** How far it is scrolled, in pixels. */
  top: number;
  /** The height of the window onto it. */
  view: number;
  /** The height of all of it. */
  whole: number;
}

/** So near to the end, in pixels, counts as being there. */
export const nearEnd = 48;

export function isAtEnd({ top, view, whole }: Metrics): boolean {
  return whole - view - top <= nearEnd;
}

/**
 * Whether the end is followed after the reader scrolled: from when it was reached until the reader goes up. Growth alone
 * changes nothing, although it moves the end away for the moment.
 */
export function followsAfter(followed: boolean, before: number, now: Metrics): boolean {
  if (isAtEnd(now)) return true;
  return followed && now.top >= before - 1;
}

/** Something that stays where it is on the screen while other things change their height. */
export interface Anchor {
  key: string;
  /** The distance of its top from the window's top. */
  offset: number;
}

/** How far to scroll so that an anchor stands where it stood; 0 when it is not there or has not moved. */
export function correction(anchor: Anchor | null, offset: number | null): number {
  if (anchor === null || offset === null) return 0;
  const moved = offset - anchor.offset;
  return Math.abs(moved) < 1 ? 0 : moved;
}

/**
 * The empty height below the last row, so that what was just sent can stand at the top of the window. It is used up by
 * the answer as that grows.
 */
export function roomBelow(view: number, fromQuestionToEnd: number): number {
  return Math.max(0, Math.floor(view - fromQuestionToEnd));
}

/** Whether older messages are to be asked for: less than two windows are left above. */
export function wantsOlder({ top, view }: Metrics): boolean {
  return top < view * 2;
}
