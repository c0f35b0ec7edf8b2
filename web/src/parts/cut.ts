// Cuts what is too large to be shown: a line of a megabyte, a hundred thousand lines. The whole can be copied and saved.

/** In characters. */
export const longestLine = 4_000;
export const longestText = 200_000;
export const mostLines = 5_000;

export interface Preview {
  lines: readonly string[];
  /** Whether the lines are less than the whole. */
  cut: boolean;
}

/** The lines of a text that are shown. */
export function previewOf(text: string, most = mostLines): Preview {
  const reach = text.slice(0, longestText);
  const all = reach.split("\n");
  const lines = all.slice(0, most).map((line) => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line));
  return { lines, cut: reach.length < text.length || all.length > most || lines.some((line, at) => line !== all[at]) };
}

/** How many lines a text has. */
export function lineCount(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
