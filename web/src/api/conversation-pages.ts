// Finds and changes conversations in the pages of a list that may have a hundred thousand of them. Each page gets an
// index once, so the work depends on the number of pages and on what changes, not on the number of conversations. Pure.
import type { InfiniteData } from "@tanstack/react-query";
import type { Conversation } from "./client";
import { memoized } from "./memoized";

/** The conversations of a page, or another part of a list. */
type Part = readonly Conversation[];

/** Returns the conversations of a part by identifier. */
export const indexOf: (part: Part) => ReadonlyMap<string, Conversation> = memoized(
  (part: Part) => new Map(part.map((one) => [one.conversation_id, one])),
);

export function find(parts: readonly Part[], id: string): Conversation | undefined {
  for (const part of parts) {
    const found = indexOf(part).get(id);
    if (found !== undefined) return found;
  }
  return undefined;
}

export const partsOf = (pages: readonly { data: Part }[]): readonly Part[] => pages.map(({ data }) => data);

/** Replaces a conversation, or removes it (null). Returns the same list if that changes nothing. */
export function replaceConversation<P extends { data: Conversation[] }, Param>(
  list: InfiniteData<P, Param>,
  id: string,
  change: (conversation: Conversation) => Conversation | null,
): InfiniteData<P, Param> {
  let pages: P[] | null = null;
  list.pages.forEach((page, at) => {
    const before = indexOf(page.data).get(id);
    const after = before && change(before);
    if (after === before) return;
    pages ??= [...list.pages];
    pages[at] = {
      ...page,
      data: page.data.flatMap((one) => (one.conversation_id !== id ? [one] : after == null ? [] : [after])),
    };
  });
  return pages === null ? list : { ...list, pages };
}

/**
 * Returns a function that reports whether a conversation is in two parts of a list: one that moved while pages were
 * loading may be on two pages. Each call counts only what
 * has changed since the call before.
 */
export function repetitions(): (parts: readonly Part[]) => boolean {
  let before = new Set<Part>();
  const counts = new Map<string, number>();
  let repeated = 0;
  const count = (part: Part, step: 1 | -1) => {
    for (const { conversation_id: id } of part) {
      const now = (counts.get(id) ?? 0) + step;
      if (now === 0) counts.delete(id);
      else counts.set(id, now);
      if (step === 1 ? now === 2 : now === 1) repeated += step;
    }
  };
  return (parts) => {
    const now = new Set(parts);
    for (const part of before) if (!now.has(part)) count(part, -1);
    for (const part of now) if (!before.has(part)) count(part, 1);
    before = now;
    return repeated > 0;
  };
}

/** Returns all loaded conversations once each: one that changed between the loading of two pages may be on both. */
export function uniqueConversations(pages: readonly { data: readonly Conversation[] }[]): Conversation[] {
  const found = new Map<string, Conversation>();
  for (const page of pages)
    for (const one of page.data) if (!found.has(one.conversation_id)) found.set(one.conversation_id, one);
  return [...found.values()];
}
