// Sends requests to a live turn, each until the service responds. All of them may be repeated: the service accepts each once.
import { Refusal, send, type Schemas } from "./client";
import { readRefusal, unreachable } from "./problem";
import { noticeSignOut, useSessionState } from "./session-state";

/** The longest pause between attempts without Retry-After, in milliseconds. */
const longestPause = 8_000;
/** A browser refuses larger requests that outlast their page: 64 KiB, of characters of up to 3 bytes. */
const longestKeptAlive = 20_000;

/**
 * Sends a request until the service accepts or refuses it. Returns the refusal; null: accepted. onFailure is called after
 * an attempt that is repeated: there was no response, or the session or a limit did not permit the request.
 */
export async function postSteering(
  request: Schemas["SteeringRequest"],
  onFailure: (refusal: Refusal) => void,
): Promise<Refusal | null> {
  const body = JSON.stringify(request);
  for (let failures = 0; ; failures++) {
    try {
      const init = {
        method: "POST",
        keepalive: body.length <= longestKeptAlive,
        headers: { "Content-Type": "application/json" },
        body,
        signal: AbortSignal.timeout(10_000),
      };
      const response = await send(new Request(new URL("/chat/steering", location.origin), init));
      if (!response.ok) throw await readRefusal(response);
      return null;
    } catch (error) {
      noticeSignOut(error);
      const refusal = error instanceof Refusal ? error : unreachable();
      if (!refusal.outcomeUnknown && refusal.status !== 401 && refusal.status !== 429) return refusal;
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
