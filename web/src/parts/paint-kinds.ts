// What the page and the worker that colours code say to each other.
import type { Language } from "./languages";

/** What a stretch of code is; code.css gives each its colour. */
export const inks = ["plain", "keyword", "string", "string-expression", "comment", "constant", "function", "parameter", "punctuation", "link"] as const;
export type Ink = (typeof inks)[number];

/** Lines of stretches. */
export type Painted = readonly (readonly (readonly [Ink, string])[])[];

export interface PaintJob {
  id: number;
  code: string;
  language: Language;
}

export interface PaintResult {
  id: number;
  /** null: it stays plain. */
  lines: Painted | null;
}
