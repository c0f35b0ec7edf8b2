// Displays the changes of a conversation at once, and stores them one after the other, in the order in which they were made.
import type { Conversation } from "./client";
import { currentOf } from "./current-conversation";
import { pendingChanges, withoutChange, type Change } from "./pending-changes";
import { unreachable } from "./problem";
import { cacheChange, cacheWithPending } from "./queries";
import { newUnloadGuard } from "./session-state";
import { TabLocks } from "./tab-locks";

/** The longest wait for the service to store a change, in milliseconds. */
const timeout = 25_000;

interface Queue {
  /** The conversation as the service has it, as far as the responses to the changes say. */
  stored: Conversation;
  /** The end of the last change; it is never rejected. */
  last?: Promise<unknown>;
}

const queues = new Map<string, Queue>();

/** The changes that are not stored yet, of all conversations. */
const unstored = new Set<Promise<Conversation>>();
/** How many changes were refused, or had no response in time. */
let failures = 0;
/** Of the changes that are not stored yet, so that a sign-out in another tab waits for them. */
export const changeLocks = new TabLocks("change");

/**
 * Displays a change of a conversation and stores it, after the changes of it that were made before, so that the last one counts. Until it
 * is stored or refused, it overrides the responses to other requests, which may have been sent before it. A refused change is no longer
 * displayed. Returns the response, overridden by the changes that are still being stored.
 *
 * before: the conversation as it is displayed without the change. store sends the change, based on the state and the version
 * that it is called with: those that the changes before it have led to. Without a response in time, its signal aborts it, and
 * the change ends like any other whose outcome is unknown: with the Refusal of an unreachable service. pace calls store when its
 * request can be sent, and may repeat it; the time starts with each call.
 */
export async function storeInOrder(
  before: Conversation,
  change: Change,
  store: (base: Conversation, signal: AbortSignal) => Promise<Conversation>,
  pace = (send: () => Promise<Conversation>) => send(),
): Promise<Conversation> {
  const id = before.conversation_id;
  const queue = queues.get(id) ?? { stored: before };
  queues.set(id, queue);
  const pending = pendingChanges.get(id) ?? { changes: new Set(), stored: before };
  pendingChanges.set(id, pending);
  pending.changes.add(change);
  cacheChange(id, change);
  startWaiting();
  const stored = queue.last ? queue.last.then(send) : send();
  queue.last = stored.catch(() => {});
  unstored.add(stored);
  changeLocks.holdUntil(stored);
  try {
    const response = await stored;
    pending.changes.delete(change);
    return cacheWithPending(response);
  } catch (refusal) {
    failures++;
    pending.changes.delete(change);
    cacheChange(id, withoutChange(change, pending));
    throw refusal;
  } finally {
    endWaiting();
    unstored.delete(stored);
    if (pending.changes.size === 0) {
      pendingChanges.delete(id);
      queues.delete(id);
    }
  }

  async function send(): Promise<Conversation> {
    // A request that contains a title is based on a response to a change: what is displayed may have a version with a title that was
    // set elsewhere, and which a pending one hides.
    const titled = "title" in change || "profile" in change;
    const version = titled ? queue.stored.version : Math.max(queue.stored.version, before.version);
    const base = { ...queue.stored, version };
    const response = await pace(() => sendNow((signal) => store(base, signal)));
    // A title that was set elsewhere is not taken over: the next change of the title has to be refused because of it.
    if ("title" in change || response.title === base.title || response.title_source === "auto") queue.stored = response;
    return response;
  }
}

/** Sends a request of a change that waits until then. Throws the Refusal of an unreachable service if it takes too long. */
async function sendNow<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T> {
  endWaiting();
  const signal = AbortSignal.timeout(timeout);
  const late = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(unreachable())));
  try {
    return await Promise.race([request(signal), late]);
  } finally {
    startWaiting();
  }
}

/**
 * Repeats the request of a change that was refused for a stale version, based on the current one. Throws any other refusal. The browser
 * asks before it closes the page until the repetition has ended.
 */
export async function repeatOnCurrent(
  refusal: unknown,
  repeat: (current: Conversation) => Promise<Conversation>,
): Promise<Conversation> {
  const current = currentOf(refusal);
  startWaiting();
  try {
    cacheWithPending(current);
    return await repeat(current);
  } finally {
    endWaiting();
  }
}

/** Waits until all changes are stored or refused, or a time in milliseconds is over. Returns how many are not stored. */
export async function awaitChanges(limit: number): Promise<number> {
  const before = failures;
  let over = false; // not by the time of day, which can be set back
  const end = new Promise<void>((resolve) => setTimeout(resolve, limit)).then(() => void (over = true));
  while (unstored.size > 0 && !over) await Promise.race([Promise.allSettled(unstored), end]);
  return failures - before + unstored.size;
}

export const hasUnstoredChanges = (): boolean => unstored.size > 0;

const preventUnload = newUnloadGuard();

/** How many changes wait: for others of their conversation, for others of a batch, or to be repeated. */
let waiting = 0;

/**
 * While changes wait, the browser asks before it closes the page, which would lose them: they cannot be sent at that moment, because the
 * service refuses a change that arrives before the one it is based on, and many requests at once. A change that is being stored needs
 * no question: its request outlives the page.
 */
function startWaiting(): void {
  if (waiting++ === 0) addEventListener("beforeunload", preventUnload);
}

function endWaiting(): void {
  if (--waiting === 0) removeEventListener("beforeunload", preventUnload);
}
