// Finds the targets of shortcuts in the document: messages ([data-message]) and code blocks ([data-code]).

/** Focuses the message after (1) or before (-1) the focused one. Without one, starts at the top of the view. */
export function moveMessage(by: 1 | -1): void {
  const messages = [...document.querySelectorAll<HTMLElement>("[data-message]")];
  if (messages.length === 0) return;
  const focused = messages.findIndex((message) => message.contains(document.activeElement));
  const top = messages.findIndex((message) => message.getBoundingClientRect().bottom > headerHeight);
  const next = focused >= 0 ? focused + by : by === 1 ? Math.max(top, 0) : Math.max(top - 1, 0);
  const message = messages[Math.min(Math.max(next, 0), messages.length - 1)]!;
  message.focus({ preventScroll: true });
  message.scrollIntoView({
    block: "start",
    behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth",
  });
}

/** The height in pixels at the top of the page that the header covers. */
const headerHeight = 80;

/** Returns the text of the last code block; null if there is none. */
export function lastCode(): string | null {
  const block = [...document.querySelectorAll<HTMLElement>("[data-code]")].at(-1);
  return block === undefined ? null : ((block.querySelector("code") ?? block).textContent ?? null);
}
