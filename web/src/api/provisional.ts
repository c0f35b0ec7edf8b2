// Provisional titles and rows of conversations whose first message is still being sent. Pure.
import { maxProvisionalTitle } from "../generated/limits";
import type { Conversation } from "./client";
import { find, indexOf } from "./conversation-pages";
import type { OutboxMessage } from "./outbox-message";

/** Returns the title that the service will give a conversation with this first message until it generates one. */
export function provisionalTitle(message: string): string {
  let title = "";
  for (const word of message.split(/\s+/).filter(Boolean)) {
    if (word.startsWith("```")) break; // code is not a title
    const next = title === "" ? word : `${title} ${word}`;
    // A long word, or a language without spaces, is cut.
    if ([...next].length > maxProvisionalTitle)
      return `${title || [...word].slice(0, maxProvisionalTitle - 1).join("")}…`;
    title = next;
  }
  return title;
}

/** Returns the conversation that a message in the outbox creates. It has no version until the service has it. */
function futureConversation(message: OutboxMessage): Conversation {
  const time = new Date(message.writtenAt).toISOString();
  return {
    conversation_id: message.conversationID,
    active_branch_id: "",
    head_message_id: null,
    live_turn_id: null,
    title: provisionalTitle(message.text),
    title_source: "auto",
    profile: message.newConversation?.profile ?? null,
    project_id: message.newConversation?.project ?? null,
    archived_at: null,
    pinned_at: null,
    metadata: {},
    message_count: 0,
    has_draft: false,
    temporary: message.newConversation?.temporary ?? false,
    unread: false,
    version: 0,
    created_at: time,
    updated_at: time,
    last_activity_at: time,
  };
}

/** Whether the service has the conversation, so that it can be renamed and deleted. */
export const isStored = (conversation: Conversation): boolean => conversation.version > 0;

/** Whether nothing was ever sent in a conversation, so that it is at most a draft. A temporary one shows what it is. */
export const isUnsent = (conversation: Conversation): boolean =>
  isStored(conversation) &&
  !conversation.temporary &&
  conversation.message_count === 0 &&
  conversation.live_turn_id === null &&
  conversation.title === "" &&
  conversation.pinned_at === null;

/**
 * Adds the conversations that the outbox messages create, and the titles that the service has not set yet, to a list in
 * parts, of which the first one has the pinned conversations. Parts that do not change stay the same objects.
 */
export function withOutbox(
  parts: readonly (readonly Conversation[])[],
  messages: readonly OutboxMessage[],
): readonly (readonly Conversation[])[] {
  const first = new Map<string, OutboxMessage>();
  for (const message of messages)
    if (message.targetTurn === undefined && !first.has(message.conversationID))
      first.set(message.conversationID, message);
  if (first.size === 0) return parts;
  const ids = [...first.keys()];
  const listed = parts.map((part) =>
    !ids.some((id) => indexOf(part).get(id)?.title === "")
      ? part
      : part.map((one) => {
          const message = one.title === "" ? first.get(one.conversation_id) : undefined;
          return message === undefined ? one : { ...one, title: provisionalTitle(message.text) };
        }),
  );
  const future = [...first.values()]
    .filter((message) => message.newConversation !== undefined && !find(parts, message.conversationID))
    .map(futureConversation)
    .reverse();
  return future.length === 0 ? listed : listed.toSpliced(1, 0, future);
}

/** Leaves out the temporary conversations, which no list has: only those that the outbox messages create can be. */
export const withoutTemporary = (
  parts: readonly (readonly Conversation[])[],
  messages: readonly OutboxMessage[],
): readonly (readonly Conversation[])[] =>
  messages.some(({ newConversation }) => newConversation?.temporary)
    ? parts.map((part) => (part.some((one) => one.temporary) ? part.filter((one) => !one.temporary) : part))
    : parts;
