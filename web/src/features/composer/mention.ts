// Finds the word at the caret that begins with "@" and names a file, or with "/" and names a prompt. Pure.
import { maxPromptName, maxQuery } from "../../generated/limits";
export interface Mention {
  /** The position of the sign. */
  start: number;
  /** The position after the word: the caret. */
  end: number;
  /** The text after the sign. */
  query: string;
}

/** Returns the word that ends at the caret; null: there is none, or a text is selected. */
export type FindMention = (text: string, from: number, to: number) => Mention | null;

/**
 * Before the "@" there is the beginning of the text, a space, an opening bracket or quotation mark, or a letter of a script
 * without spaces between words: not in an e-mail address. The full-width form is what Japanese input methods write.
 */
const file = /(?:^|[\s\p{Ps}\p{Pi}"'\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}])[@＠]([^\s@＠]*)$/u;

/** Before the "/" there is nothing else in its line. A second one makes the word a path, which no prompt is named by. */
const prompt = /^\s*[/／]([\p{L}\p{M}\p{Nd}_-]*)$/u;

export const fileAt: FindMention = (text, from, to) =>
  from === to ? found(file, text.slice(Math.max(0, to - maxQuery - 2), to), to, maxQuery) : null;

export const promptAt: FindMention = (text, from, to) =>
  from === to ? found(prompt, text.slice(text.lastIndexOf("\n", to - 1) + 1, to), to, maxPromptName) : null;

function found(word: RegExp, before: string, caret: number, longest: number): Mention | null {
  const query = word.exec(before)?.[1];
  return query === undefined || query.length > longest ? null : { start: caret - query.length - 1, end: caret, query };
}
