// The rows of a conversation, in order: the messages of the branch, the outgoing messages of this browser, and the
// answer that is streaming. Pure.
import { memoized } from "../../api/memoized";
import type { Outgoing } from "../../api/outbox";
import type { Message } from "../../generated/events";

export interface Row {
  /** The identifier of the message once it is known; before, that of the outgoing message or of the turn. */
  key: string;
  kind: "question" | "answer";
  /** null: the message is outgoing, or this page has not loaded it yet. */
  message: Message | null;
  outgoing: Outgoing | null;
  turnID: string | null;
}

/** The followed turn, with the identifiers of its messages; null: its events have not named them yet. */
export interface Followed {
  turnID: string;
  messageID: string | null;
  userMessageID: string | null;
}

export function rowsOf(messages: readonly Message[], outgoing: readonly Outgoing[], followed: Followed | null): Row[] {
  const answered = new Set(
    messages.filter((message) => message.role === "assistant").map((message) => message.turn_id),
  );
  const pending = outgoing.filter(({ turnID }) => turnID === null || !answered.has(turnID as Message["turn_id"]));
  const rows = messagesBeforeBranch(messages, pending).map(rowOf);
  for (const sent of pending) {
    const known = sent.turnID !== null && followed?.turnID === sent.turnID ? followed : null;
    if (sent.branch?.mode !== "regenerate" || sent.state === "refused" || sent.state === "waiting") {
      rows.push({
        key: known?.userMessageID ?? sent.key,
        kind: "question",
        message: null,
        outgoing: sent,
        turnID: sent.turnID,
      });
    }
    if (sent.turnID !== null)
      rows.push({
        key: known?.messageID ?? sent.turnID,
        kind: "answer",
        message: null,
        outgoing: null,
        turnID: sent.turnID,
      });
  }
  return rows;
}

/** Returns the messages before the one of which a new version is outgoing; all messages if that version was refused. */
function messagesBeforeBranch(messages: readonly Message[], pending: readonly Outgoing[]): readonly Message[] {
  const branching = pending.find(({ branch, state }) => branch !== undefined && state !== "refused")?.branch;
  const at =
    branching === undefined ? -1 : messages.findIndex((message) => message.message_id === branching.message_id);
  return at < 0 ? messages : messages.slice(0, at);
}

/** The same message gives the same row object, so that only changed rows render again. */
const rowOf = memoized((message: Message): Row => ({
  key: message.message_id,
  kind: message.role === "user" ? "question" : "answer",
  message,
  outgoing: null,
  turnID: message.turn_id,
}));

/** Returns the number of rows after the last one that was seen; 0 if that row no longer exists. */
export function countRowsAfter(rows: readonly Row[], seen: string | null): number {
  if (seen === null) return 0;
  const at = rows.findLastIndex((row) => row.key === seen);
  return at < 0 ? 0 : rows.length - 1 - at;
}

/** Reports whether a message exists and no longer streams. */
export function isFinal(message: Message | null): message is Message {
  return message !== null && message.status !== "streaming";
}
