// What shortcuts find in the page: messages ([data-message]) and blocks of code ([data-code]).

/** Gives focus to the message after (1) or before (-1) the one that has it, or that stands at the top of what is seen. */
export function moveMessage(by: 1 | -1): void {
  const messages = [...document.querySelectorAll<HTMLElement>("[data-message]")];
  if (messages.length === 0) return;
  const focused = messages.findIndex((message) => message.contains(document.activeElement));
  const top = messages.findIndex((message) => message.getBoundingClientRect().bottom > edge);
  const next = focused >= 0 ? focused + by : by === 1 ? Math.max(top, 0) : Math.max(top - 1, 0);
  const message = messages[Math.min(Math.max(next, 0), messages.length - 1)]!;
  message.focus({ preventScroll: true });
  message.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
}

/** Pixels at the top of the page that the head covers. */
const edge = 80;

/** The text of the last block of code; null when there is none. */
export function lastCode(): string | null {
  const block = [...document.querySelectorAll<HTMLElement>("[data-code]")].at(-1);
  return block === undefined ? null : ((block.querySelector("code") ?? block).textContent ?? null);
}
