// Finds text without regard to case, diacritics and the kind of white space. Pure.

/** A text as it is compared, and for each of its characters the index of the original character. */
export interface Folded {
  text: string;
  index: readonly number[];
}

/**
 * Marks that readers leave out when they search: accents, Hebrew points, Arabic vowels and the tatweel; and invisible
 * characters.
 */
const ignored =
  /[\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]/g;

/** Quotation marks and hyphens that keyboards do not have. */
const typed: Readonly<Record<string, string>> = {
  "\u2018": "'",
  "\u2019": "'",
  "\u201a": "'",
  "\u201b": "'",
  "\u201c": '"',
  "\u201d": '"',
  "\u201e": '"',
  "\u201f": '"',
  "\u2010": "-",
  "\u2011": "-",
};

const forms = new Map<string, string>();

/** Returns the form in which a character is compared. Capital letters have one form where small ones have two: "ß", "ς". */
function formOf(sign: string): string {
  const known = forms.get(sign);
  if (known !== undefined) return known;
  const plain = sign.normalize("NFKD").replace(ignored, "").toUpperCase().toLowerCase().replace(ignored, "");
  const form = typed[sign] ?? plain.normalize("NFC");
  forms.set(sign, form);
  return form;
}

/** Folds a text for the comparison. Lines stay separate. */
export function fold(text: string): Folded {
  let folded = "";
  const index: number[] = [];
  let at = 0;
  for (const sign of text) {
    // White space counts as one space.
    const same = /[^\S\n]/.test(sign) ? (folded.endsWith(" ") ? "" : " ") : formOf(sign);
    folded += same;
    for (let each = 0; each < same.length; each++) index.push(at);
    at += sign.length;
  }
  index.push(text.length);
  return { text: folded, index };
}

/** Returns the positions of a folded query in a folded text, without overlaps. */
export function positionsOf(query: string, text: string): number[] {
  const found: number[] = [];
  if (query === "") return found;
  for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) found.push(at);
  return found;
}

/** A match: the row, and its number among the matches of the row. */
export interface Match {
  key: string;
  nth: number;
}

/** The matches of the rows that have any, in their order: there may be many thousands. */
export class MatchList {
  /** The number of matches before each row, and of all. */
  readonly #starts: readonly number[];
  constructor(readonly rows: readonly { key: string; count: number }[]) {
    const starts = [0];
    for (const { count } of rows) starts.push(starts.at(-1)! + count);
    this.#starts = starts;
  }

  get length(): number {
    return this.#starts.at(-1)!;
  }

  /** Returns the match with an index; null: there is none. */
  at(index: number): Match | null {
    if (index < 0 || index >= this.length) return null;
    let [low, high] = [0, this.rows.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= index) low = middle;
      else high = middle - 1;
    }
    return { key: this.rows[low]!.key, nth: index - this.#starts[low]! };
  }

  /** Returns the index of the first match of each row. */
  firsts(): readonly { key: string; index: number }[] {
    return this.rows.map(({ key }, at) => ({ key, index: this.#starts[at]! }));
  }

  /** Returns the index of a match after the list has changed; that of the first one at or after a row, if it is gone. */
  indexOf(match: Match | null, order: ReadonlyMap<string, number>, from: number): number {
    const same = match === null ? -1 : this.rows.findIndex(({ key, count }) => key === match.key && match.nth < count);
    if (same >= 0) return this.#starts[same]! + match!.nth;
    const next = this.rows.findIndex(({ key }) => (order.get(key) ?? -1) >= from);
    return next >= 0 ? this.#starts[next]! : this.length - 1;
  }
}
