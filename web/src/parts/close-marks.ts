// Closes open Markdown marks (for example **) in text that is still streaming. The library that does it is loaded with
// the first such text; until it is loaded, open marks are shown as written.
import { loadable } from "../controls/loadable";

const options = {
  katex: false,
  inlineKatex: false,
  htmlTags: false,
  comparisonOperators: false,
  singleTilde: false,
  linkMode: "text-only",
} as const;

const library = loadable(async () => (await import("remend")).default);

/** Loads the library. Rejects if that fails; the next call tries again. */
export const loadMarkCloser = (): Promise<unknown> => library.load();

export function withMarksClosed(text: string): string {
  if (library.value !== null) return library.value(text, options);
  void loadMarkCloser().catch(() => {}); // open marks stay visible
  return text;
}
