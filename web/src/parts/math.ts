// Finds formulas in Markdown: $…$, $$…$$, \(…\) and \[…\], but not in code, and not prices such as $5. Placeholders
// replace them before Markdown is parsed, which would read their stars and underscores as marks. Afterwards the
// formulas are put back into the parsed tree.

export interface Formula {
  tex: string;
  /** Whether it is displayed on a line of its own: $$…$$ and \[…\]. */
  display: boolean;
  /** The source, with its delimiters. */
  raw: string;
}

/** A piece of plain text, or a formula. */
export type Piece = { text: string } | Formula;

const maxFormulaLength = 4_000; // characters of a formula
const maxFenceLine = 200; // characters of a line in which a fence is looked for: the pattern backtracks over blanks
const fenceLine = /^[ \t]*(?:>[ \t]?)*(?:[-*+]|\d+[.)])?[ \t]*(`{3,}|~{3,})/;

/** Splits a text into plain pieces and formulas; their sources joined give the text. */
export function splitMath(source: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (let at = 0; at < source.length;) {
    const codeEnd = endOfCode(source, at);
    if (codeEnd > at) {
      at = codeEnd;
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

/** Returns the end of the code that starts at a position; the position itself if no code starts there. */
function endOfCode(source: string, at: number): number {
  if (at === 0 || source[at - 1] === "\n") {
    const line = source.slice(at, (source.indexOf("\n", at) + 1 || source.length + 1) - 1);
    const fence = fenceLine.exec(line.slice(0, maxFenceLine))?.[1];
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
  if (source.startsWith("$$", at)) return delimitedFormula(source, at, "$$", "$$", true);
  if (source.startsWith("\\[", at)) return delimitedFormula(source, at, "\\[", "\\]", true);
  if (source.startsWith("\\(", at)) return delimitedFormula(source, at, "\\(", "\\)", false);
  if (source[at] === "$") return formulaInDollars(source, at);
  return null;
}

function delimitedFormula(
  source: string,
  at: number,
  opening: string,
  closing: string,
  display: boolean,
): Formula | null {
  // Only so far: many openings without an end would otherwise each read the rest of the text.
  const near = source.slice(at, at + maxFormulaLength + closing.length);
  const end = at + near.indexOf(closing, opening.length);
  if (end < at) return null;
  const tex = source.slice(at + opening.length, end);
  if (tex.trim() === "" || /\n[ \t]*\n/.test(tex)) return null;
  return { tex, display, raw: source.slice(at, end + closing.length) };
}

/** Pandoc's rule, which excludes prices: no whitespace directly inside the dollars, no digit after the second one. */
function formulaInDollars(source: string, at: number): Formula | null {
  if (/[\s$]/.test(source[at + 1] ?? " ")) return null;
  for (let end = at + 1; end < source.length && end - at <= maxFormulaLength; end++) {
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

// A placeholder is the index of a formula between two characters of Unicode's private use area.
const placeholderStart = "\uE000";
const placeholderEnd = "\uE001";
const placeholder = /\uE000(\d+)\uE001/;

/** Replaces formulas by placeholders. A text without formulas or with a placeholder character is returned unchanged. */
export function extractFormulas(source: string): { text: string; formulas: readonly Formula[] } {
  if (!/\$|\\[([]/.test(source) || source.includes(placeholderStart)) return { text: source, formulas: [] };
  const formulas: Formula[] = [];
  const text = splitMath(source)
    .map((piece) => ("text" in piece ? piece.text : `${placeholderStart}${formulas.push(piece) - 1}${placeholderEnd}`))
    .join("");
  return { text, formulas };
}

/** Splits a text with placeholders into plain pieces and formulas. */
export function splitPlaceholders(text: string, formulas: readonly Formula[]): Piece[] {
  return text
    .split(placeholder)
    .map((part, at): Piece => (at % 2 === 0 ? { text: part } : (formulas[Number(part)] ?? { text: "" })))
    .filter((piece) => !("text" in piece) || piece.text !== "");
}

/** Replaces placeholders by the source of their formulas, for text without rendered formulas: code and URLs. */
export function restoreSource(text: string, formulas: readonly Formula[]): string {
  return splitPlaceholders(text, formulas)
    .map((piece) => ("text" in piece ? piece.text : piece.raw))
    .join("");
}
