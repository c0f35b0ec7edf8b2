// The input of a tool call that asks for approval: as text with its marked parts, and as fields that can be edited. Pure.

/** Characters that are invisible or that change the order of the text around them. The user approves what they see. */
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** Returns a text with its hidden characters as their code points. */
export function revealHidden(text: string): string {
  return text.replace(hidden, (one) => `⟨U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

export interface Piece {
  text: string;
  marked: boolean;
}

/** Splits a text at its marked parts. Where two of them start, the longer one counts. */
export function piecesOf(text: string, marked: readonly string[]): Piece[] {
  const parts = marked.filter((part) => part !== "").toSorted((a, b) => b.length - a.length);
  const pieces: Piece[] = [];
  let rest = text;
  while (rest !== "") {
    const starts = parts.map((part) => rest.indexOf(part));
    const start = Math.min(...starts.filter((at) => at >= 0), rest.length);
    if (start > 0) pieces.push({ text: rest.slice(0, start), marked: false });
    const part = parts[starts.indexOf(start)];
    if (part === undefined) break;
    pieces.push({ text: part, marked: true });
    rest = rest.slice(start + part.length);
  }
  return pieces;
}

/** A value of the input that a form can edit. */
export type FieldValue = string | number | boolean;

/** Returns the names and values of an input whose values all fit into a form; null: it has to be edited as JSON. */
export function fieldsOf(input: unknown): [string, FieldValue][] | null {
  if (input === null || typeof input !== "object" || Array.isArray(input)) return null;
  const entries = Object.entries(input) as [string, unknown][];
  const isField = (entry: [string, unknown]): entry is [string, FieldValue] =>
    ["string", "number", "boolean"].includes(typeof entry[1]);
  return entries.length > 0 && entries.every(isField) ? entries : null;
}

/** Reads a number as the user has typed it; null: it is none. */
export function readNumber(text: string): number | null {
  const value = Number(text);
  return text.trim() === "" || !Number.isFinite(value) ? null : value;
}

/** Reads an input from JSON; null: the text is not a JSON object. */
export function readInput(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
