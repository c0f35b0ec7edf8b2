// Tooltips of elements with data-tooltip (the text) and data-keys (the shortcut). One element shows all of them. Screen
// readers ignore it: the elements have names. Nothing is shown on touch screens.

/** Milliseconds that the pointer rests on an element before its tooltip appears. */
const delay = 400;
/** How long after a tooltip the next one appears at once, and how long the pointer may be between both, in ms. */
const grace = 200;
/** The distance to the element and to the edges of the window in pixels. */
const gap = 6;

const targetOf = (event: Event) =>
  event.target instanceof Element ? event.target.closest<HTMLElement>("[data-tooltip]") : null;

/** Starts to show tooltips: also of the element on which the pointer already is. */
export function startTooltips(): void {
  let owner: HTMLElement | null = null;
  let timer = 0;
  let hiddenAt = -Infinity;

  const box = document.createElement("div");
  box.setAttribute("aria-hidden", "true");
  box.dataset["tooltipBox"] = "";
  box.className =
    "fixed left-0 top-0 z-60 flex max-w-72 gap-2 rounded-sm border border-transparent bg-ink px-2 py-1 text-xs font-medium text-paper shadow-float";

  function show(element: HTMLElement): void {
    // Not for a button whose menu is open, or that was removed in the meantime.
    if (!element.isConnected || element.matches("[aria-haspopup][aria-expanded=true]")) return;
    const keys = document.createElement("kbd");
    keys.dir = "ltr";
    keys.className = "font-sans opacity-80";
    keys.textContent = element.dataset["keys"] ?? "";
    box.replaceChildren(element.dataset["tooltip"] ?? "", ...(keys.textContent === "" ? [] : [keys]));
    document.body.append(box);
    owner = element;
    const at = element.getBoundingClientRect();
    const below = at.bottom + gap + box.offsetHeight <= innerHeight;
    const left = Math.min(at.left + (at.width - box.offsetWidth) / 2, innerWidth - box.offsetWidth - gap);
    box.style.left = `${Math.max(gap, left)}px`;
    box.style.top = `${below ? at.bottom + gap : at.top - gap - box.offsetHeight}px`;
  }

  function hide(): void {
    clearTimeout(timer);
    if (owner === null) return;
    owner = null;
    hiddenAt = performance.now();
    box.remove();
  }

  /** Shows the tooltip of the element under the pointer, or hides it unless the pointer is on the tooltip. */
  function onPointerOver(event: PointerEvent): void {
    if (event.pointerType === "touch") return;
    const element = targetOf(event);
    clearTimeout(timer);
    if (element === owner && element !== null) return;
    if (element === null) {
      if (owner !== null && !box.contains(event.target as Node)) timer = window.setTimeout(hide, grace);
      return;
    }
    const atOnce = owner !== null || performance.now() - hiddenAt < grace;
    hide();
    timer = window.setTimeout(() => show(element), atOnce ? 0 : delay);
  }

  // A tooltip may cover the control to which the pointer moves, for example in the next row.
  box.onpointermove = ({ clientX, clientY }) => {
    if (document.elementsFromPoint(clientX, clientY).some((under) => under.matches("button, a"))) hide();
  };
  const hovered = document.querySelector<HTMLElement>("[data-tooltip]:hover");
  if (hovered !== null && matchMedia("(hover: hover)").matches) timer = window.setTimeout(() => show(hovered), delay);
  document.addEventListener("pointerover", onPointerOver);
  document.addEventListener("focusin", (event) => {
    const element = targetOf(event);
    if (element?.matches(":focus-visible")) show(element);
    else hide();
  });
  document.addEventListener("focusout", hide);
  document.documentElement.addEventListener("pointerleave", hide);
  for (const type of ["pointerdown", "keydown", "scroll", "blur"]) window.addEventListener(type, hide, true);
}
