// Limits how much of a text is displayed, for example of a line of a megabyte or of a hundred thousand lines. The whole
// text can still be copied and saved.

/** Limits of what is displayed: maxLineLength and maxTextLength in characters, maxLines in lines. */
export const maxLineLength = 4_000;
export const maxTextLength = 200_000;
export const maxLines = 5_000;

export interface Preview {
  lines: readonly string[];
  /** Whether the lines are only a part of the text. */
  cut: boolean;
}

/** Returns the lines of a text that are displayed, at most the given number. */
export function previewOf(text: string, most = maxLines): Preview {
  const reach = text.slice(0, maxTextLength);
  const all = reach.split("\n");
  const lines = all
    .slice(0, most)
    .map((line) => (line.length > maxLineLength ? `${line.slice(0, maxLineLength)}…` : line));
  return { lines, cut: reach.length < text.length || all.length > most || lines.some((line, at) => line !== all[at]) };
}

/** Returns the number of lines of a text. */
export function lineCount(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
