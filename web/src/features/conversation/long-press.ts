// A long press on a message opens its menu, as in apps. A press on text that can be selected is left to the browser, which
// selects it.

/** How long a finger rests until it is a long press, in milliseconds: as in the browsers of phones. */
const duration = 500;
/** How far a resting finger may move, in pixels. */
const slack = 10;
/** What a press is for, other than the message. */
const controls = "a, button, input, textarea, select, summary, audio, video";

/** Follows the presses on the messages in an element until the returned function is called. */
export function openMenusByLongPress(content: HTMLElement): () => void {
  let timer = 0;
  let start: Touch | null = null;
  let opened = false;
  const cancel = () => window.clearTimeout(timer);
  const begin = ({ touches, target }: TouchEvent) => {
    cancel();
    opened = false;
    start = touches[0]!;
    if (touches.length > 1 || !(target instanceof Element) || target.closest(controls) !== null) return;
    const button = target.closest("[data-row]")?.querySelector<HTMLElement>("[data-message-menu]");
    if (button == null || isOnSelectableText(target, start)) return;
    timer = window.setTimeout(() => {
      opened = true;
      button.click();
    }, duration);
  };
  const move = ({ touches: [touch] }: TouchEvent) => {
    if (start === null || touch === undefined) return;
    if (Math.hypot(touch.clientX - start.clientX, touch.clientY - start.clientY) > slack) cancel();
  };
  const end = (event: Event) => {
    cancel();
    if (opened && event.cancelable) event.preventDefault(); // the lifted finger clicks nothing
  };
  const menu = (event: Event) => opened && event.preventDefault(); // the browser opens no menu of its own
  content.addEventListener("touchstart", begin, { passive: true });
  content.addEventListener("touchmove", move, { passive: true });
  content.addEventListener("touchend", end);
  content.addEventListener("touchcancel", cancel);
  content.addEventListener("contextmenu", menu);
  return () => {
    cancel();
    content.removeEventListener("touchstart", begin);
    content.removeEventListener("touchmove", move);
    content.removeEventListener("touchend", end);
    content.removeEventListener("touchcancel", cancel);
    content.removeEventListener("contextmenu", menu);
  };
}

/** Reports whether a touch is on a text that the browser would select. target: the innermost element there. */
function isOnSelectableText(target: Element, { clientX: x, clientY: y }: Touch): boolean {
  if (getComputedStyle(target).userSelect === "none") return false;
  const range = document.createRange();
  return [...target.childNodes].some((node) => {
    if (!(node instanceof Text)) return false;
    range.selectNodeContents(node);
    return [...range.getClientRects()].some(
      ({ left, right, top, bottom }) =>
        x >= left - slack && x <= right + slack && y >= top - slack && y <= bottom + slack,
    );
  });
}
