// Changes of conversations that are displayed before the service has stored them.

type Change = Readonly<Record<string, unknown>>;

/** The changes of a conversation, in the order in which they were made, and the end of the last one, which is never rejected. */
interface Pending {
  readonly changes: Set<Change>;
  last?: Promise<unknown>;
}

const pending = new Map<string, Pending>();

/** Returns what a response says of a conversation, overridden by the changes that are being stored. */
export function withPendingChanges<T extends { conversation_id: string }>(one: T): T {
  const own = pending.get(one.conversation_id);
  return own ? Object.assign({}, one, ...own.changes) : one;
}

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
  const own: Pending = pending.get(id) ?? { changes: new Set() };
  pending.set(id, own);
  own.changes.add(change);
  const stored = own.last ? own.last.then(store) : store();
  own.last = stored.catch(() => {});
  const response = await stored.finally(() => {
    own.changes.delete(change);
    if (own.changes.size === 0) pending.delete(id);
  });
  return withPendingChanges(response);
}
