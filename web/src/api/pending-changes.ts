// Changes of conversations that are displayed before the service has stored them.

type Change = Readonly<Record<string, unknown>>;

/** By conversation, in the order in which they were made. */
const pending = new Map<string, readonly Change[]>();

/** Returns what a response says of a conversation, overridden by the changes that are being stored. */
export function withPendingChanges<T extends { conversation_id: string }>(one: T): T {
  const changes = pending.get(one.conversation_id);
  return changes === undefined ? one : Object.assign({}, one, ...changes);
}

/**
 * Stores a change of a conversation. Until it is stored or refused, it overrides the responses to other requests, which may
 * have been sent before it.
 */
export async function whilePending<T>(id: string, change: Change, store: () => Promise<T>): Promise<T> {
  pending.set(id, [...(pending.get(id) ?? []), change]);
  try {
    return await store();
  } finally {
    const others = pending.get(id)!.filter((one) => one !== change);
    if (others.length > 0) pending.set(id, others);
    else pending.delete(id);
  }
}
