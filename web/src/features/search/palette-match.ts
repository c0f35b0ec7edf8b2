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
