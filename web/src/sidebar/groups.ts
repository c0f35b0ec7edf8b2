// The lines of the sidebar: conversations grouped by the date of their last activity in the reader's time zone. Pure.
import type { Conversation } from "../api/client";

export type Group = { name: "pinned" | "today" | "yesterday" | "week" | "month" } | { name: "earlier"; month: Date };

/** One line of the list. */
export type Line =
  | { kind: "group"; key: string; group: Group }
  | { kind: "conversation"; key: string; conversation: Conversation; place: number };

/** Returns all loaded conversations once each: one that changed between the loading of two pages may be on both. */
export function uniqueConversations(pages: readonly { data: readonly Conversation[] }[]): Conversation[] {
  const found = new Map<string, Conversation>();
  for (const page of pages)
    for (const one of page.data) if (!found.has(one.conversation_id)) found.set(one.conversation_id, one);
  return [...found.values()];
}

/**
 * Returns the loaded conversations that the list shows, in its order. A page that was loaded before a conversation was
 * pinned or archived here has it in another place.
 */
export function listedConversations(pages: readonly { data: readonly Conversation[] }[]): Conversation[] {
  const shown = uniqueConversations(pages).filter((one) => one.archived_at === null);
  return [...shown.filter((one) => one.pinned_at !== null), ...shown.filter((one) => one.pinned_at === null)];
}

/** Returns a function that numbers the days of a time zone: one more at each midnight, however long the day. */
export function dayIn(zone: string): (time: Date) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    calendar: "gregory",
    numberingSystem: "latn",
    year: "numeric",
    month: "numeric",
    day: "numeric",
  });
  return (time) => {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(parts["year"]!, parts["month"]! - 1, parts["day"]) / 86_400_000;
  };
}

function groupOf(conversation: Conversation, today: number, dayOf: (time: Date) => number): Group {
  if (conversation.pinned_at !== null) return { name: "pinned" };
  const day = dayOf(new Date(conversation.last_activity_at));
  const ago = today - day;
  if (ago <= 0) return { name: "today" }; // negative: the clock of this device is behind
  if (ago === 1) return { name: "yesterday" };
  if (ago <= 7) return { name: "week" };
  if (ago <= 30) return { name: "month" };
  const date = new Date(day * 86_400_000);
  return { name: "earlier", month: new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)) };
}

/** Returns the lines of the list in the order of the service, with a heading wherever the group changes. */
export function linesOf(conversations: readonly Conversation[], now: Date, zone: string): Line[] {
  const dayOf = dayIn(zone);
  const today = dayOf(now);
  const lines: Line[] = [];
  let last = "";
  conversations.forEach((conversation, place) => {
    const group = groupOf(conversation, today, dayOf);
    const key = group.name === "earlier" ? group.month.toISOString() : group.name;
    if (key !== last) lines.push({ kind: "group", key: `${key} ${conversation.conversation_id}`, group });
    last = key;
    lines.push({ kind: "conversation", key: conversation.conversation_id, conversation, place });
  });
  return lines;
}

/** Returns the conversation to which a key moves from another one; null: none. */
export function neighbour(lines: readonly Line[], from: string | null, key: string): string | null {
  const ids = lines.filter((line) => line.kind === "conversation").map((line) => line.key);
  const at = from === null ? -1 : ids.indexOf(from);
  switch (key) {
    case "ArrowDown":
      return ids[at + 1] ?? null;
    case "ArrowUp":
      return at > 0 ? ids[at - 1]! : null;
    case "Home":
      return ids[0] ?? null;
    case "End":
      return ids.at(-1) ?? null;
    default:
      return null;
  }
}
