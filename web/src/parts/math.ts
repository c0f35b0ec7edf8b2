// Finds formulas in Markdown: $…$, $$…$$, \(…\) and \[…\], not in code and not among prices. Formulas are taken out
// before Markdown is read, which would take their stars and underscores for its own, and put back into what it made.

export interface Formula {
  tex: string;
  /** Stands on a line of its own. */
  display: boolean;
  /** As it was written. */
  raw: string;
}

/** A stretch of text, or a formula. */
export type Piece = { text: string } | Formula;

const longest = 4_000;
const fenceLine = /^[ \t]*(?:>[ \t]?)*(?:[-*+]|\d+[.)])?[ \t]*(`{3,}|~{3,})/;

/** Cuts a text into stretches and formulas; put together they are the text. */
export function splitMath(source: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (let at = 0; at < source.length; ) {
    const beyond = beyondCode(source, at);
    if (beyond > at) {
      at = beyond;
      continue;
    }
    const formula = formulaAt(source, at);
    if (formula === null) {
      at += source[at] === "\\" ? 2 : 1;
      continue;
    }
    if (at > from) pieces.push({ text: source.slice(from, at) });
    pieces.push(formula);
    from = at = at + formula.raw.length;
  }
  if (from < source.length) pieces.push({ text: source.slice(from) });
  return pieces;
}

/** Where the code that begins here ends; here, when none does. */
function beyondCode(source: string, at: number): number {
  if (at === 0 || source[at - 1] === "\n") {
    const line = source.slice(at, (source.indexOf("\n", at) + 1 || source.length + 1) - 1);
    const fence = fenceLine.exec(line)?.[1];
    if (fence !== undefined) {
      const end = new RegExp(`\\n[ \\t>]*${fence[0]}{${fence.length},}[ \\t]*(?=\\n|$)`, "g");
      end.lastIndex = at + line.length;
      return end.exec(source) === null ? source.length : end.lastIndex;
    }
  }
  if (source[at] !== "`") return at;
  const run = /^`+/.exec(source.slice(at, at + 64))![0];
  for (let end = source.indexOf(run, at + run.length); end >= 0; end = source.indexOf(run, end)) {
    const closing = /^`+/.exec(source.slice(end))![0];
    end += closing.length;
    if (closing.length === run.length) return end;
  }
  return at + run.length;
}

function formulaAt(source: string, at: number): Formula | null {
  if (source.startsWith("$$", at)) return between(source, at, "$$", "$$", true);
  if (source.startsWith("\\[", at)) return between(source, at, "\\[", "\\]", true);
  if (source.startsWith("\\(", at)) return between(source, at, "\\(", "\\)", false);
  if (source[at] === "$") return inDollars(source, at);
  return null;
}

function between(source: string, at: number, opening: string, closing: string, display: boolean): Formula | null {
  const end = source.indexOf(closing, at + opening.length);
  if (end < 0 || end - at > longest) return null;
  const tex = source.slice(at + opening.length, end);
  if (tex.trim() === "" || /\n[ \t]*\n/.test(tex)) return null;
  return { tex, display, raw: source.slice(at, end + closing.length) };
}

/** Pandoc's rule, which leaves prices alone: no space inside the dollars, and no digit behind the second one. */
function inDollars(source: string, at: number): Formula | null {
  if (/[\s$]/.test(source[at + 1] ?? " ")) return null;
  for (let end = at + 1; end < source.length && end - at <= longest; end++) {
    const sign = source[end];
    if (sign === "\\") end += 1;
    else if (sign === "`" || (sign === "\n" && /^[ \t]*\n/.test(source.slice(end + 1, end + 80)))) return null;
    else if (sign === "$") {
      if (/\s/.test(source[end - 1]!) || /[\d$]/.test(source[end + 1] ?? "")) return null;
      return { tex: source.slice(at + 1, end), display: false, raw: source.slice(at, end + 1) };
    }
  }
  return null;
}

// Two private characters hold the place of a formula, with its number between them.
const open = "\uE000";
const close = "\uE001";
const place = /\uE000(\d+)\uE001/;

/** A text with places instead of its formulas; the same text when it has none. */
export function takeFormulas(source: string): { text: string; formulas: readonly Formula[] } {
  if (!/\$|\\[([]/.test(source) || source.includes(open)) return { text: source, formulas: [] };
  const formulas: Formula[] = [];
  const text = splitMath(source)
    .map((piece) => ("text" in piece ? piece.text : `${open}${formulas.push(piece) - 1}${close}`))
    .join("");
  return { text, formulas };
}

/** The formulas and stretches of a text that Markdown made. */
export function putFormulas(text: string, formulas: readonly Formula[]): Piece[] {
  return text
    .split(place)
    .map((part, at): Piece => (at % 2 === 0 ? { text: part } : (formulas[Number(part)] ?? { text: "" })))
    .filter((piece) => !("text" in piece) || piece.text !== "");
}

/** A text as it was written, where no formula may stand: in code and in addresses. */
export function withoutPlaces(text: string, formulas: readonly Formula[]): string {
  return putFormulas(text, formulas)
    .map((piece) => ("text" in piece ? piece.text : piece.raw))
    .join("");
}
