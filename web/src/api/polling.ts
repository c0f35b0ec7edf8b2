// Polls the service for changes on other devices, which it does not push: the newest page of the conversation list and
// the open conversation. The interval depends on whether the page is visible and used, and whether a turn is live.
import { useOutbox } from "./outbox";
import { intervals, pollInterval } from "./poll-interval";
import { conversationsQuery, queryClient, refetch } from "./queries";
import { Refusal } from "./problem";
import { useSessionState } from "./session-state";

/** The pause after a failed poll in milliseconds. The service may require a longer one. */
const failurePause = 15_000;

let usedAt = 0;
let ranAt = -Infinity;
let polledAt = 0;
let pausedUntil = 0;
let polling = false;

/** Starts to poll. One timer checks whether a poll is due, so that no event has to schedule the next one. */
export function startPolling(): void {
  const use = () => void (usedAt = Date.now());
  use();
  polledAt = Date.now();
  for (const type of ["pointerdown", "pointermove", "wheel", "keydown", "focus"])
    window.addEventListener(type, use, { capture: true, passive: true });
  document.addEventListener("visibilitychange", use);
  setInterval(() => void pollIfDue(), intervals.running);
}

async function pollIfDue(): Promise<void> {
  const now = Date.now();
  if (isRunning()) ranAt = now;
  const interval = pollInterval({
    hidden: document.hidden,
    online: navigator.onLine,
    sinceUse: now - usedAt,
    sinceRunning: now - ranAt,
  });
  // Timers fire a little early or late; half a tick is less than any difference between the intervals.
  const due = now - polledAt >= interval - intervals.running / 2;
  if (!due || polling || now < pausedUntil || useSessionState.getState().lost) return;
  polling = true;
  polledAt = now;
  await poll().finally(() => (polling = false));
}

/** Reports whether a turn is live in a loaded conversation or a message is being sent. */
function isRunning(): boolean {
  const list = queryClient.getQueryData(conversationsQuery.queryKey)?.pages ?? [];
  return (
    useOutbox.getState().list.some(({ state }) => state === "sending" || state === "accepted") ||
    list.some(({ data }) => data.some((one) => one.live_turn_id !== null)) ||
    queryClient
      .getQueriesData<{ live_turn_id: string | null }>({ queryKey: ["conversation"], type: "active" })
      .some(([, page]) => page !== undefined && page.live_turn_id !== null)
  );
}

/** Refetches the displayed queries that are not being fetched. A conversation that does not exist is not refetched. */
async function poll(): Promise<void> {
  const queries = [conversationsQuery.queryKey, ["conversation"]]
    .flatMap((queryKey) => queryClient.getQueryCache().findAll({ queryKey, type: "active", fetchStatus: "idle" }))
    .filter(({ state: { error } }) => !(error instanceof Refusal && error.status === 404));
  await Promise.all(
    queries.map(({ queryKey }) =>
      queryKey[0] === "conversations" ? refetch(["conversations"]) : queryClient.refetchQueries({ queryKey }),
    ),
  );
  const failed = queries.map(({ state: { error } }) => error).filter((error) => error !== null);
  if (failed.length === 0) return;
  const required = Math.max(...failed.map((error) => (error instanceof Refusal ? error.retryAfter : 0)));
  pausedUntil = Date.now() + Math.max(failurePause, required);
}
