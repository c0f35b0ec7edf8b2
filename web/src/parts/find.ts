// Finds text without regard to case, diacritics and the kind of white space. Pure.

/** A text as it is compared, and for each of its characters the index of the original character. */
export interface Folded {
  text: string;
  index: readonly number[];
}

/** Marks that readers leave out when they search: accents, Hebrew points, Arabic vowels and the tatweel. */
const ignored = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]/g;

/** Folds a text for the comparison. Lines stay separate. */
export function fold(text: string): Folded {
  let folded = "";
  const index: number[] = [];
  let at = 0;
  for (const sign of text) {
    // White space counts as one space.
    const same = /[^\S\n]/.test(sign)
      ? folded.endsWith(" ")
        ? ""
        : " "
      : sign.normalize("NFKD").replace(ignored, "").toLowerCase().normalize("NFC");
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

/** Returns the index of a match after the list has changed; that of the first one at or after a row, if it is gone. */
export function indexOf(match: Match | null, list: readonly Match[], order: ReadonlyMap<string, number>, from: number) {
  const same = match === null ? -1 : list.findIndex(({ key, nth }) => key === match.key && nth === match.nth);
  if (same >= 0) return same;
  const next = list.findIndex(({ key }) => (order.get(key) ?? -1) >= from);
  return next >= 0 ? next : list.length - 1;
}
