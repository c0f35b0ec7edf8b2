// What a conversation shows, in order: the messages of the branch, what was sent from here and is on its way, and the
// answer that is being written. Pure.
import type { Outgoing } from "../api/outbox";
import type { Message } from "../generated/events";

export interface Row {
  /** The message's identifier, once it is known. */
  key: string;
  kind: "question" | "answer";
  /** null: the service has it, but this page does not yet; or it is on its way. */
  message: Message | null;
  outgoing: Outgoing | null;
  turnID: string | null;
}

/** The turn that is followed, as far as its own events name its messages. */
export interface Followed {
  turnID: string;
  messageID: string | null;
  userMessageID: string | null;
}

export function rowsOf(messages: readonly Message[], outgoing: readonly Outgoing[], followed: Followed | null): Row[] {
  const answered = new Set(messages.filter((message) => message.role === "assistant").map((message) => message.turn_id));
  const going = outgoing.filter(({ turnID }) => turnID === null || !answered.has(turnID as Message["turn_id"]));
  const rows = beforeBranch(messages, going).map(rowOf);
  for (const sent of going) {
    const known = sent.turnID !== null && followed?.turnID === sent.turnID ? followed : null;
    if (sent.branch?.mode !== "regenerate" || sent.state === "refused" || sent.state === "waiting") {
      rows.push({ key: known?.userMessageID ?? sent.key, kind: "question", message: null, outgoing: sent, turnID: sent.turnID });
    }
    if (sent.turnID !== null) rows.push({ key: known?.messageID ?? sent.turnID, kind: "answer", message: null, outgoing: null, turnID: sent.turnID });
  }
  return rows;
}

/** What stays when another version of a message is on its way; a refused one leaves everything as it was. */
function beforeBranch(messages: readonly Message[], going: readonly Outgoing[]): readonly Message[] {
  const branching = going.find(({ branch, state }) => branch !== undefined && state !== "refused")?.branch;
  const at = branching === undefined ? -1 : messages.findIndex((message) => message.message_id === branching.message_id);
  return at < 0 ? messages : messages.slice(0, at);
}

// The same message is the same row, so that only rows that changed are drawn.
const known = new WeakMap<Message, Row>();

function rowOf(message: Message): Row {
  let row = known.get(message);
  if (row === undefined) {
    row = { key: message.message_id, kind: message.role === "user" ? "question" : "answer", message, outgoing: null, turnID: message.turn_id };
    known.set(message, row);
  }
  return row;
}

/** How many rows stand behind the last one that was seen; 0 when that one is gone. */
export function newSince(rows: readonly Row[], seen: string | null): number {
  if (seen === null) return 0;
  const at = rows.findLastIndex((row) => row.key === seen);
  return at < 0 ? 0 : rows.length - 1 - at;
}

/** Whether a message has its last words. */
export function isFinal(message: Message | null): message is Message {
  return message !== null && message.status !== "streaming";
}
