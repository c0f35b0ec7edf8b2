/**
 * Ends a test that waits for a condition that never becomes true, in milliseconds. It is more than ten times the slowest wait
 * seen, and judges nothing: no test depends on how fast something happens.
 */
export const hangGuard = 120_000;
