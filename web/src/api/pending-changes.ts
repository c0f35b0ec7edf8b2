// Changes of conversations that are displayed before the service has stored them. change-queue.ts stores them.
import type { Conversation } from "./client";

export type Change = Partial<Conversation>;

/** The changes of a conversation that are not stored yet, by conversation, in the order in which they were made. */
export const pendingChanges = new Map<string, Set<Change>>();

/** Returns what a response says of a conversation, overridden by the changes that are being stored. */
export function withPendingChanges<T extends { conversation_id: string }>(one: T): T {
  const own = pendingChanges.get(one.conversation_id);
  return own ? Object.assign({}, one, ...own) : one;
}
