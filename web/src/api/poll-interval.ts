// How often a page polls the service. Pure.

/** Milliseconds between two polls. */
export const intervals = { running: 1_000, used: 3_000, idle: 20_000, runningHidden: 5_000 } as const;
/** How long a page counts as used after the last input, in milliseconds. */
const usedFor = 3 * 60_000;
/** How long a title may still be generated after the end of a turn, in milliseconds. */
const titleDelay = 20_000;
export interface PageState {
  hidden: boolean;
  online: boolean;
  /** Milliseconds since the last input of the user. */
  sinceUse: number;
  /** Milliseconds since a turn was last live or a message was being sent. */
  sinceRunning: number;
}

/** Returns the milliseconds between two polls; Infinity: no polls. Hidden tabs poll only for the end of a turn. */
export function pollInterval({ hidden, online, sinceUse, sinceRunning }: PageState): number {
  const running = sinceRunning < titleDelay;
  if (!online) return Infinity;
  if (hidden) return running ? intervals.runningHidden : Infinity;
  return running ? intervals.running : sinceUse < usedFor ? intervals.used : intervals.idle;
}
