// Changes of conversations that are displayed before the service has stored them.

type Change = Readonly<Record<string, unknown>>;

/** By conversation, in the order in which they were made. */
const pending = new Map<string, readonly Change[]>();

/** Returns what a response says of a conversation, overridden by the changes that are being stored. */
export function withPendingChanges<T extends { conversation_id: string }>(one: T): T {
  const changes = pending.get(one.conversation_id);
  return changes === undefined ? one : Object.assign({}, one, ...changes);
}

/** By conversation, the end of the last change. It is never rejected. */
const ends = new Map<string, Promise<unknown>>();

/**
 * Stores a change of a conversation, after the changes of it that were made before, so that the last one counts. Until it is
 * stored or refused, it overrides the responses to other requests, which may have been sent before it. Returns the response,
 * overridden by the changes that are still being stored.
 */
export async function whilePending<T extends { conversation_id: string }>(
  id: string,
  change: Change,
  store: () => Promise<T>,
): Promise<T> {
  pending.set(id, [...(pending.get(id) ?? []), change]);
  const earlier = ends.get(id);
  const stored = earlier === undefined ? store() : earlier.then(store);
  const end = stored.catch(() => undefined);
  ends.set(id, end);
  let response: T;
  try {
    response = await stored;
  } finally {
    const others = pending.get(id)!.filter((one) => one !== change);
    if (others.length > 0) pending.set(id, others);
    else pending.delete(id);
    if (ends.get(id) === end) ends.delete(id);
  }
  return withPendingChanges(response);
}
