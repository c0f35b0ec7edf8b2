// Lets the wheel scroll the transcript while the pointer is over the controls around it.
import { useEffect, type RefObject } from "react";

/** The height of a line in pixels, for wheels that report lines. */
const lineHeight = 24;

export function useWheel(scroller: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = scroller.current;
    const page = element?.closest("main");
    if (element === null || page == null) return;
    const turned = (event: WheelEvent) => {
      if (event.ctrlKey || event.defaultPrevented || scrollsItself(event.target, page)) return;
      if (page.querySelector('[role="menu"]') !== null) return; // the menu stays at its button
      const unit = [1, lineHeight, element.clientHeight][event.deltaMode]!;
      element.scrollBy({ top: event.deltaY * unit, behavior: "instant" });
    };
    page.addEventListener("wheel", turned, { passive: true });
    return () => page.removeEventListener("wheel", turned);
  }, [scroller]);
}

/** Reports whether the browser scrolls the target of a wheel event or an element around it on the page. */
function scrollsItself(target: EventTarget | null, page: Element): boolean {
  for (let at = target instanceof Element ? target : null; at !== null && page.contains(at); at = at.parentElement)
    if (at.scrollHeight > at.clientHeight && /auto|scroll/.test(getComputedStyle(at).overflowY)) return true;
  return false;
}
