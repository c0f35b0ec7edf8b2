// Closes open Markdown marks (for example **) in text that is still streaming. The library that does it is loaded with
// the first such text; until it is loaded, open marks are shown as written.
const options = {
  katex: false,
  inlineKatex: false,
  htmlTags: false,
  comparisonOperators: false,
  singleTilde: false,
  linkMode: "text-only",
} as const;

let close: ((text: string) => string) | null = null;
let loading: Promise<void> | null = null;

/** Loads the library. Rejects if that fails; the next call tries again. */
export function loadMarkCloser(): Promise<void> {
  loading ??= import("remend").then(
    ({ default: remend }) => void (close = (text) => remend(text, options)),
    (failure: unknown) => {
      loading = null;
      throw failure;
    },
  );
  return loading;
}

export function withMarksClosed(text: string): string {
  if (close !== null) return close(text);
  void loadMarkCloser().catch(() => {}); // open marks stay visible
  return text;
}
