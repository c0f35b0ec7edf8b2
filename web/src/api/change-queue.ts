// Stores the changes of a conversation one after the other, in the order in which they were made.
import type { Conversation } from "./client";
import { pendingChanges, withPendingChanges, type Change } from "./pending-changes";
import { unreachable } from "./problem";

/** The longest wait for the service to store a change, in milliseconds. */
const timeout = 25_000;

interface Queue {
  /** The conversation as the service has it, as far as the responses to the changes say. */
  stored: Conversation;
  /** The end of the last change; it is never rejected. */
  last?: Promise<unknown>;
}

const queues = new Map<string, Queue>();

/**
 * Stores a change of a conversation, after the changes of it that were made before, so that the last one counts. Until it is
 * stored or refused, it overrides the responses to other requests, which may have been sent before it. Returns the response,
 * overridden by the changes that are still being stored.
 *
 * before: the conversation as it is displayed without the change. store sends the change, based on the state and the version
 * that it is called with: those that the changes before it have led to. Without a response in time, its signal aborts it, and
 * the change ends like any other whose outcome is unknown: with the Refusal of an unreachable service.
 */
export async function storeInOrder(
  before: Conversation,
  change: Change,
  store: (base: Conversation, signal: AbortSignal) => Promise<Conversation>,
): Promise<Conversation> {
  const id = before.conversation_id;
  const queue = queues.get(id) ?? { stored: before };
  queues.set(id, queue);
  const changes = pendingChanges.get(id) ?? new Set();
  pendingChanges.set(id, changes.add(change));
  const stored = queue.last ? askBeforeClosing(queue.last).then(send) : send();
  queue.last = stored.catch(() => {});
  const response = await stored.finally(() => {
    changes.delete(change);
    if (changes.size > 0) return;
    pendingChanges.delete(id);
    queues.delete(id);
  });
  return withPendingChanges(response);

  async function send(): Promise<Conversation> {
    // A title is based on a response to a change: what is displayed may have a version with a title that was set elsewhere, and which a
    // pending one hides.
    const version = "title" in change ? queue.stored.version : Math.max(queue.stored.version, before.version);
    const base = { ...queue.stored, version };
    const response = await withTimeout((signal) => store(base, signal));
    // A title that was set elsewhere is not taken over: the next change of the title has to be refused because of it.
    if ("title" in change || response.title === base.title || response.title_source === "auto") queue.stored = response;
    return response;
  }
}

/** Sends a request. Throws the Refusal of an unreachable service if it takes too long. */
async function withTimeout<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(timeout);
  const late = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(unreachable())));
  return Promise.race([request(signal), late]);
}

/** How many ends are awaited before changes are sent. */
let waiting = 0;

/**
 * Waits for the end of a change or of a batch, for which other changes wait. Meanwhile, the browser asks before it closes the page, which
 * would lose them: they cannot be sent at that moment, because the service refuses a change that arrives before the one it is based on,
 * and many requests at once. A change that is being stored needs no question: its request outlives the page.
 */
export async function askBeforeClosing<T>(end: Promise<T>): Promise<T> {
  if (waiting++ === 0) addEventListener("beforeunload", preventUnload);
  try {
    return await end;
  } finally {
    if (--waiting === 0) removeEventListener("beforeunload", preventUnload);
  }
}

const preventUnload = (event: BeforeUnloadEvent) => event.preventDefault();
