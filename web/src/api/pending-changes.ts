// Changes of conversations that are displayed before the service has stored them. change-queue.ts stores them.
import type { Conversation } from "./client";

export type Change = Partial<Conversation>;

/** The changes of a conversation that are not stored yet. */
interface Pending {
  /** In the order in which they were made. */
  changes: Set<Change>;
  /** The conversation as the service has it, as far as any response says. */
  stored: Conversation;
}

/** The changes that are not stored yet, by conversation. */
export const pendingChanges = new Map<string, Pending>();

/**
 * Returns what a response says of a conversation, overridden by the changes that are being stored. Notes what they override, which is
 * displayed again if they are refused.
 */
export function withPendingChanges<T extends Conversation>(one: T): T {
  const pending = pendingChanges.get(one.conversation_id);
  if (pending === undefined) return one;
  if (one.version >= pending.stored.version) pending.stored = one; // a title of the service does not change the version
  return Object.assign({}, one, ...pending.changes);
}

/** Returns the fields of a change as they are displayed without it: as the service has them, or as another change sets them. */
export function withoutChange(change: Change, { stored, changes }: Pending): Change {
  const displayed: Conversation = Object.assign({}, stored, ...changes);
  return Object.fromEntries(Object.keys(change).map((field) => [field, displayed[field as keyof Conversation]]));
}

/** Returns the profile that is being stored for a conversation; null: none. */
export const pendingProfile = (id: string): Conversation["profile"] =>
  [...(pendingChanges.get(id)?.changes ?? [])].findLast(({ profile }) => profile)?.profile ?? null;
