// Repeats a request until the service accepts or refuses it. Only for requests that the service accepts once.
import { Refusal, unreachable } from "./problem";
import { noticeSignOut, useSessionState } from "./session-state";

/** The longest pause between attempts without Retry-After, in milliseconds. */
const longestPause = 8_000;

/** Whether a refusal says nothing about the request: there was no response, or the session or a limit did not permit it. */
const isUnanswered = (refusal: Refusal): boolean =>
  refusal.outcomeUnknown || refusal.status === 401 || refusal.status === 429;

/**
 * Sends a request until the service accepts or refuses it; throws the refusal. onFailure is called after an attempt that is
 * repeated. repeats: whether an attempt with a refusal is repeated.
 */
export async function untilAnswered<T>(
  attempt: () => Promise<T>,
  onFailure: (refusal: Refusal) => void,
  repeats: (refusal: Refusal) => boolean = isUnanswered,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      noticeSignOut(error);
      const refusal = error instanceof Refusal ? error : unreachable();
      if (!repeats(refusal)) throw refusal;
      onFailure(refusal);
      await pause(
        refusal.status === 401
          ? longestPause
          : Math.max(refusal.retryAfter, Math.min(longestPause, 300 * 2 ** failures) * (0.5 + Math.random() / 2)),
      );
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      stopWatching();
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end);
    const stopWatching = useSessionState.subscribe(({ lost }, before) => before.lost && !lost && end());
  });
}
