// Scrolls a transcript: follows its end while the reader is there, and otherwise keeps what is looked at where it is,
// whatever grows, comes or goes above it. The browser's own anchoring is off: not every browser has it, and none does it
// at the very top.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { correction, followsAfter, roomBelow, wantsOlder, type Anchor, type Metrics } from "./scroll";

export interface Scroll {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** Below the content: room for the last question to stand at the top. */
  room: RefObject<HTMLDivElement | null>;
  /** Whether the end is in sight and followed. */
  following: boolean;
  toEnd(): void;
  /** Brings the last question to the top and follows from there. */
  toQuestion(): void;
  /** Keeps the alternatives of a place where they are while another one is shown. */
  hold(slot: string): void;
  /** Puts everything in its place after a change. */
  settle(): void;
}

interface Standing {
  follows: boolean;
  top: number;
  anchor: (Anchor & { inner: Element | null; innerOffset: number }) | null;
  /** The last question has its room. */
  roomy: boolean;
}

/** locate gives the distance of a row from the top of the content when it is not in the document. */
export function useScroll(onOlder: () => void, locate: (key: string) => number | null): Scroll {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const room = useRef<HTMLDivElement>(null);
  const standing = useRef<Standing>({ follows: true, top: 0, anchor: null, roomy: false });
  const [following, setFollowing] = useState(true);
  const asks = useRef({ onOlder, locate });
  useLayoutEffect(() => void (asks.current = { onOlder, locate }));

  const follow = useCallback((follows: boolean) => {
    standing.current.follows = follows;
    setFollowing(follows);
  }, []);

  const settle = useCallback(() => {
    const [element, inside, below, state] = [scroller.current, content.current, room.current, standing.current];
    if (element === null || inside === null || below === null) return;
    if (state.roomy) giveRoom(element, inside, below);
    const to = state.follows ? element.scrollHeight - element.clientHeight : element.scrollTop + moved(element, inside, state.anchor, asks.current.locate);
    if (Math.abs(element.scrollTop - to) >= 1) element.scrollTop = to;
    state.top = element.scrollTop;
  }, []);

  useEffect(() => {
    const [element, inside] = [scroller.current, content.current];
    if (element === null || inside === null) return;
    const scrolled = () => {
      const state = standing.current;
      const now = metricsOf(element);
      const follows = followsAfter(state.follows, state.top, now);
      state.top = now.top;
      if (follows !== state.follows) follow(follows);
      state.anchor = anchorIn(element, inside);
      if (wantsOlder(now)) asks.current.onOlder();
    };
    const grown = new ResizeObserver(() => {
      settle();
      if (wantsOlder(metricsOf(element))) asks.current.onOlder();
    });
    element.addEventListener("scroll", scrolled, { passive: true });
    grown.observe(inside);
    grown.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, [follow, settle]);

  const toEnd = useCallback(() => {
    follow(true);
    settle();
  }, [follow, settle]);
  const toQuestion = useCallback(() => {
    standing.current.roomy = true;
    toEnd();
  }, [toEnd]);
  const hold = useCallback(
    (slot: string) => {
      const [element, row] = [scroller.current, content.current?.querySelector(`[data-slot="${CSS.escape(slot)}"]`)];
      if (element === null || !row) return;
      follow(false);
      standing.current.anchor = { key: slot, offset: offsetOf(element, row), inner: null, innerOffset: 0 };
    },
    [follow],
  );
  return { scroller, content, room, following, toEnd, toQuestion, hold, settle };
}

function metricsOf({ scrollTop, clientHeight, scrollHeight }: Element): Metrics {
  return { top: scrollTop, view: clientHeight, whole: scrollHeight };
}

function offsetOf(element: Element, inside: Element): number {
  return inside.getBoundingClientRect().top - element.getBoundingClientRect().top;
}

function giveRoom(element: HTMLElement, inside: HTMLElement, below: HTMLElement): void {
  const question = [...inside.querySelectorAll('[data-kind="question"]')].at(-1);
  if (question === undefined) return;
  const used = inside.getBoundingClientRect().bottom - question.getBoundingClientRect().top;
  const height = `${roomBelow(element.clientHeight, used)}px`;
  if (below.style.height !== height) below.style.height = height;
}

/** The first row that is in sight, and within it the first block of text. */
function anchorIn(element: Element, inside: Element): Standing["anchor"] {
  const top = element.getBoundingClientRect().top;
  const row = firstBelow(inside.querySelectorAll("[data-row]"), top);
  if (!(row instanceof HTMLElement)) return null;
  const inner = firstBelow(row.querySelectorAll(".prose > *"), top);
  return { key: row.dataset["row"]!, offset: offsetOf(element, row), inner, innerOffset: inner === null ? 0 : offsetOf(element, inner) };
}

/** The first of some elements, in the order of the page, whose end is below a line. */
function firstBelow(elements: NodeListOf<Element>, line: number): Element | null {
  let [from, to] = [0, elements.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elements[middle]!.getBoundingClientRect().bottom > line) to = middle;
    else from = middle + 1;
  }
  return elements[from] ?? null;
}

/** How far an anchor has moved from its place. */
function moved(element: Element, inside: Element, anchor: Standing["anchor"], locate: (key: string) => number | null): number {
  if (anchor === null) return 0;
  if (anchor.inner?.isConnected) return correction({ key: anchor.key, offset: anchor.innerOffset }, offsetOf(element, anchor.inner));
  const name = CSS.escape(anchor.key);
  const row = inside.querySelector(`[data-row="${name}"], [data-slot="${name}"]`);
  if (row !== null) return correction(anchor, offsetOf(element, row));
  const far = locate(anchor.key);
  return correction(anchor, far === null ? null : far + offsetOf(element, inside));
}
