// Finds the word at the caret that begins with "@" and names a file. Pure.
export interface Mention {
  /** The position of the "@". */
  start: number;
  /** The position after the word: the caret. */
  end: number;
  /** The text after the "@". */
  query: string;
}

/**
 * Before the "@" there is the beginning of the text, a space, an opening bracket or quotation mark, or a letter of a script
 * without spaces between words: not in an e-mail address. The full-width form is what Japanese input methods write.
 */
const word = /(?:^|[\s\p{Ps}\p{Pi}"'\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}])[@＠]([^\s@＠]*)$/u;

/**
 * Returns the word that ends at the caret; null: it does not begin with "@" or is longer than any name, or a text is
 * selected.
 */
export function mentionAt(text: string, from: number, to: number, longest: number): Mention | null {
  if (from !== to) return null;
  const query = word.exec(text.slice(Math.max(0, to - longest - 2), to))?.[1];
  return query === undefined || query.length > longest ? null : { start: to - query.length - 1, end: to, query };
}
