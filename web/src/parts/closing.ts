// Closes, for the moment, the marks of text that is still being written. What does it is loaded with the first such text;
// for the blink until it is there, open marks are shown as they were written.
const options = { katex: false, inlineKatex: false, htmlTags: false, comparisonOperators: false, singleTilde: false, linkMode: "text-only" } as const;

let close: ((text: string) => string) | null = null;
let loading: Promise<void> | null = null;

/** Loads what closes marks. Rejects when it cannot be loaded; the next call tries again. */
export function loadClosing(): Promise<void> {
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
  void loadClosing().catch(() => {}); // the marks are shown
  return text;
}
