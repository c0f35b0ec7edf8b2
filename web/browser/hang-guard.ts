/**
 * Ends a wait for a condition that never becomes true, in milliseconds. Seven times as long is the limit of a whole test: ten
 * times the slowest run seen. It judges nothing, because no test depends on how fast something happens.
 */
export const hangGuard = 120_000;
