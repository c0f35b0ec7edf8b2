// The lines of the sidebar: conversations grouped by the date of their last activity in the reader's time zone.
import type { Conversation } from "../../api/client";
import { partsOf, repetitions, uniqueConversations } from "../../api/conversation-pages";
import { memoized } from "../../api/memoized";
import { isUnsent } from "../../api/provisional";
import { dayIn } from "../../controls/today";

export type Group = { name: "pinned" | "today" | "yesterday" | "week" | "month" } | { name: "earlier"; month: Date };

/** One line of the list. */
export type Line =
  { kind: "group"; key: string; group: Group } | { kind: "conversation"; key: string; conversation: Conversation };

type Part = readonly Conversation[];

/** Returns the pinned and the other conversations of a page that are not archived. */
const splitOf = memoized((page: Part): { pinned: Part; others: Part } => {
  // Without a draft, a conversation in which nothing was sent is an abandoned new one.
  const shown = page.filter((one) => one.archived_at === null && (one.has_draft || !isUnsent(one)));
  return {
    pinned: shown.filter((one) => one.pinned_at !== null),
    others: shown.filter((one) => one.pinned_at === null),
  };
});

const repeats = repetitions();

/**
 * Returns the loaded conversations that the list shows, in its order: the pinned ones, then the others of each page. A
 * page that was loaded before a conversation was pinned or archived here has it in another place.
 */
export function listedParts(pages: readonly { data: Part }[]): readonly Part[] {
  const parts = partsOf(pages);
  const shown = (repeats(parts) ? [uniqueConversations(pages)] : parts).map(splitOf);
  return [shown.flatMap(({ pinned }) => pinned), ...shown.map(({ others }) => others)];
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

/** The lines of a part of the list, of which the first one is a heading. */
interface PartLines {
  today: number;
  zone: string;
  withHeading: readonly Line[];
  withoutHeading: readonly Line[];
  /** The keys of its first and of its last group; empty: it has no line. */
  first: string;
  last: string;
}

const partLines = new WeakMap<Part, PartLines>();

/**
 * Returns the lines of the list in the order of the service, with a heading wherever the group changes. The lines of a part
 * are computed once a day.
 */
export function linesOf(parts: readonly Part[], now: Date, zone: string): readonly Line[] {
  const dayOf = dayIn(zone);
  const today = dayOf(now);
  const lines: (readonly Line[])[] = [];
  let last = "";
  for (const part of parts) {
    let known = partLines.get(part);
    if (known?.today !== today || known.zone !== zone)
      partLines.set(part, (known = { today, zone, ...linesOfPart(part, today, dayOf) }));
    lines.push(known.first === last ? known.withoutHeading : known.withHeading);
    last = known.last || last;
  }
  return ([] as Line[]).concat(...lines);
}

function linesOfPart(part: Part, today: number, dayOf: (time: Date) => number): Omit<PartLines, "today" | "zone"> {
  const lines: Line[] = [];
  const groups: string[] = [];
  for (const conversation of part) {
    const group = groupOf(conversation, today, dayOf);
    const key = group.name === "earlier" ? group.month.toISOString() : group.name;
    if (key !== groups.at(-1)) {
      groups.push(key);
      lines.push({ kind: "group", key: `${key} ${conversation.conversation_id}`, group });
    }
    lines.push({ kind: "conversation", key: conversation.conversation_id, conversation });
  }
  return { withHeading: lines, withoutHeading: lines.slice(1), first: groups[0] ?? "", last: groups.at(-1) ?? "" };
}

/** Reports whether two lists have lines with the same keys, in the same order. */
export const haveSameKeys = (a: readonly Line[], b: readonly Line[]): boolean =>
  a.length === b.length && a.every((line, at) => line.key === b[at]!.key);

/** Returns the conversation to which a key moves from another one; null: none. */
export function neighbour(lines: readonly Line[], from: string | null, key: string): string | null {
  const next = (at: number, step: 1 | -1): string | null => {
    let to = at;
    while (lines[to]?.kind === "group") to += step;
    return lines[to]?.key ?? null;
  };
  const at = from === null ? -1 : lines.findIndex((line) => line.key === from);
  switch (key) {
    case "ArrowDown":
      return next(at + 1, 1);
    case "ArrowUp":
      return at > 0 ? next(at - 1, -1) : null;
    case "Home":
      return next(0, 1);
    case "End":
      return next(lines.length - 1, -1);
    default:
      return null;
  }
}
