// The conversation that the refusal of a change contains.
import { type Conversation, Refusal } from "./client";

/** Returns the current state of a conversation from the refusal of a stale version. Throws any other refusal. */
export function currentOf(refusal: unknown): Conversation {
  if (!(refusal instanceof Refusal) || refusal.code !== "stale_version") throw refusal;
  return refusal.problem?.current as unknown as Conversation;
}
