// Matches titles with typed words. Pure.
import { fold } from "../../parts/find";

/** Removes case and accents. The marks of Japanese kana stay: they make other letters. */
const normalize = (text: string): string => fold(text.normalize()).text;

/** Scripts that write words without spaces between them. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

/**
 * Returns a function that reports whether a title contains every typed word, as the beginning of one of its words; in
 * scripts without spaces, anywhere.
 */
export function matcher(typed: string): (title: string) => boolean {
  const wanted = normalize(typed).split(/\s+/).filter(Boolean);
  return (title) => {
    const text = normalize(title);
    // A word also begins after a punctuation mark, and a typed word may begin with one.
    const starts = [...text.matchAll(/(?<![\p{L}\p{N}])\S/gu)].map(({ index }) => index);
    return wanted.every((word) =>
      unspaced.test(word) ? text.includes(word) : starts.some((start) => text.startsWith(word, start)),
    );
  };
}

/** Returns the conversations with the newest activity among the first ones of a list in which pinned ones come first. */
export function mostRecent<One extends { last_activity_at: string }>(list: readonly One[], most: number): One[] {
  return list.slice(0, most).sort((a, b) => Date.parse(b.last_activity_at) - Date.parse(a.last_activity_at));
}

/** Sorts named things: those with exactly the typed name first. Otherwise they keep their order. */
export function exactFirst<One>(list: readonly One[], typed: string, nameOf: (one: One) => string): One[] {
  const wanted = normalize(typed.trim());
  const isExact = (one: One) => normalize(nameOf(one).trim()) === wanted;
  return [...list.filter(isExact), ...list.filter((one) => !isExact(one))];
}

/** The first results of a conversation, and how many others of it were found. */
export interface ConversationResults<One> {
  conversation: string;
  shown: readonly One[];
  others: number;
}

/** Groups results by conversation, in the order of the first result of each, with at most a number of results each. */
export function byConversation<One extends { conversation_id: string | null }>(
  found: readonly One[],
  most: number,
): ConversationResults<One>[] {
  const groups = new Map<string, One[]>();
  for (const one of found)
    groups.set(one.conversation_id ?? "", [...(groups.get(one.conversation_id ?? "") ?? []), one]);
  return [...groups].map(([conversation, all]) => ({
    conversation,
    shown: all.slice(0, most),
    others: Math.max(0, all.length - most),
  }));
}
