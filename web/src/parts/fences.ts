// Fenced code in text that is otherwise not Markdown, such as a user message. Pure.

/** A piece of text as it was written, or a block of code. */
export type Piece = { text: string } | { code: string; language: string };

const opening = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;

/**
 * Splits a text at its fenced code. Code without a closing fence extends to the end of the text; a fence without code
 * after it is text.
 */
export function splitFences(text: string): Piece[] {
  if (!/^ {0,3}(?:```|~~~)/m.test(text)) return [{ text }];
  const pieces: Piece[] = [];
  let lines: string[] = [];
  let fence: { closing: RegExp; language: string } | null = null;
  const endPiece = () => {
    if (fence !== null) pieces.push({ code: lines.join("\n"), language: fence.language });
    else if (lines.some((line) => line.trim() !== ""))
      pieces.push({ text: lines.join("\n").replace(/^(?:[ \t]*\n)+|\s+$/g, "") });
    lines = [];
  };
  const all = text.split("\n");
  const lastLine = all.findLastIndex((line) => line.trim() !== "");
  for (const [at, line] of all.entries()) {
    const opened = fence === null && at < lastLine ? opening.exec(line) : null;
    if (opened !== null) {
      const [, marks, language] = opened as unknown as [string, string, string];
      endPiece();
      fence = { closing: new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t]*$`), language };
    } else if (fence?.closing.test(line)) {
      endPiece();
      fence = null;
    } else lines.push(line);
  }
  if (fence !== null || lines.length > 0) endPiece();
  return pieces;
}

/** Returns code in a fence that no text in the code can close. */
export function fenced(code: string, language = ""): string {
  const longest = Math.max(2, ...[...code.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${code}\n${fence}`;
}
