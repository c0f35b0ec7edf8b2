// Closes, for the moment, the marks of text that is still being written. What does it comes right behind the first page,
// before anybody has sent anything; until then open marks are shown as they were written.
const options = { katex: false, inlineKatex: false, htmlTags: false, comparisonOperators: false, singleTilde: false, linkMode: "text-only" } as const;

let close: ((text: string) => string) | null = null;

export const closingLoaded: Promise<void> = import("remend").then(({ default: remend }) => {
  close = (text) => remend(text, options);
});
closingLoaded.catch(() => {}); // a page without it shows the marks

export function withMarksClosed(text: string): string {
  return close === null ? text : close(text);
}
