// The messages between the page and the worker that highlights code.
import type { Language } from "./languages";

/** The token kinds of highlighted code; code.css defines a colour for each. */
export const tokenKinds = [
  "plain",
  "keyword",
  "string",
  "string-expression",
  "comment",
  "constant",
  "function",
  "parameter",
  "punctuation",
  "link",
  "inserted",
  "deleted",
] as const;
export type TokenKind = (typeof tokenKinds)[number];

/** Highlighted code: lines of pieces, each with its kind and text. */
export type HighlightedLines = readonly (readonly (readonly [TokenKind, string])[])[];

export interface HighlightJob {
  id: number;
  code: string;
  language: Language;
}

export interface HighlightResult {
  id: number;
  /** null: the code stays plain. */
  lines: HighlightedLines | null;
}
