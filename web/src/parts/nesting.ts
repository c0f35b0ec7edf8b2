// Limits for text that is nested deeply, for example in thousands of quotes: the parser and the renderer are recursive.

/** Elements that are nested more deeply are shown as their source. */
export const maxNesting = 30;

/** Returns the result of a recursive function, or another value if the stack is too small for it. */
export function unlessTooDeep<T>(run: () => T, otherwise: T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof RangeError) return otherwise;
    throw error;
  }
}
