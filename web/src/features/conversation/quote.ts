// Quotes of a message for the composer.

/** Returns the selected text if all of it is in a message; "": none. */
export function selectedIn(message: string): string {
  const selection = getSelection();
  if (selection === null || selection.rangeCount === 0) return "";
  const row = document.querySelector(`[data-row="${CSS.escape(message)}"]`);
  return row?.contains(selection.getRangeAt(0).commonAncestorContainer) === true ? selection.toString().trim() : "";
}

/** Returns a text as a quote in Markdown, with an empty line after it to write in. */
export const quoteOf = (text: string): string =>
  `${text
    .trim()
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n")}\n\n`;
