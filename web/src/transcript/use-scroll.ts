// Scrolls a transcript: follows its end while the reader is there, and otherwise keeps what is looked at where it is,
// whatever grows, comes or goes above it. The browser's own anchoring is off: not every browser has it, and none does it
// at the very top.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { correction, followsAfter, isAtEnd, roomBelow, wantsOlder, type Anchor, type Metrics } from "./scroll";

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

/** By its own name, or by the place that it shares with its other versions. */
export type By = "row" | "slot";

interface Standing {
  follows: boolean;
  /** How far it was scrolled when this was last looked at; another value is the reader's doing. */
  top: number;
  anchor: (Anchor & { by: By; inner: Element | null; innerOffset: number }) | null;
  /** A place that is held, and the row that stands there until another version takes it, and the focus if this one has it. */
  held: { slot: string; row: string; focused: boolean } | null;
  /** The last question has its room. */
  roomy: boolean;
}

/** locate gives the distance of a row from the top of the content when it is not in the document. */
export function useScroll(onOlder: () => void, locate: (key: string, by: By) => number | null): Scroll {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const room = useRef<HTMLDivElement>(null);
  const standing = useRef<Standing>({ follows: true, top: 0, anchor: null, held: null, roomy: false });
  const [following, setFollowing] = useState(true);
  const asks = useRef({ onOlder, locate });
  useLayoutEffect(() => void (asks.current = { onOlder, locate }));

  const follow = useCallback((follows: boolean) => {
    standing.current.follows = follows;
    setFollowing(follows);
  }, []);

  /** Takes in where the reader has scrolled to. */
  const absorb = useCallback(
    (element: HTMLElement, inside: HTMLElement) => {
      const state = standing.current;
      const now = metricsOf(element);
      if (Math.abs(now.top - state.top) < 1) return; // where it was put
      const follows = followsAfter(state.follows, state.top, now);
      state.top = now.top;
      if (follows !== state.follows) follow(follows);
      state.anchor = anchorIn(element, inside);
    },
    [follow],
  );

  const settle = useCallback(() => {
    const [element, inside, below, state] = [scroller.current, content.current, room.current, standing.current];
    if (element === null || inside === null || below === null) return;
    absorb(element, inside);
    if (state.roomy) giveRoom(element, inside, below);
    state.anchor ??= anchorIn(element, inside);
    const to = state.follows ? element.scrollHeight - element.clientHeight : element.scrollTop + moved(element, inside, state.anchor, asks.current.locate);
    if (Math.abs(element.scrollTop - to) >= 1) element.scrollTop = to;
    state.top = element.scrollTop;
    const taker = state.held === null ? null : rowAt(inside, state.held.slot);
    if (state.held !== null && taker !== null && taker.dataset["row"] !== state.held.row) {
      if (state.held.focused && document.activeElement === document.body) taker.focus({ preventScroll: true });
      state.held = null;
      state.anchor = anchorIn(element, inside);
      if (isAtEnd(metricsOf(element))) follow(true);
    }
  }, [absorb, follow]);

  useEffect(() => {
    const [element, inside] = [scroller.current, content.current];
    if (element === null || inside === null) return;
    const older = () => wantsOlder(metricsOf(element)) && asks.current.onOlder();
    const scrolled = () => {
      absorb(element, inside);
      older();
    };
    const grown = new ResizeObserver(() => {
      settle();
      older();
    });
    element.addEventListener("scroll", scrolled, { passive: true });
    grown.observe(inside);
    grown.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, [absorb, settle]);

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
      const [element, inside] = [scroller.current, content.current];
      const row = inside === null ? null : rowAt(inside, slot);
      if (element === null || inside === null || row === null) return;
      absorb(element, inside); // else what was scrolled in this frame is taken for a scroll away from what is held
      follow(false);
      standing.current.held = { slot, row: row.dataset["row"]!, focused: row.contains(document.activeElement) };
      standing.current.anchor = { key: slot, by: "slot", offset: offsetOf(element, row), inner: null, innerOffset: 0 };
    },
    [absorb, follow],
  );
  return { scroller, content, room, following, toEnd, toQuestion, hold, settle };
}

function metricsOf({ scrollTop, clientHeight, scrollHeight }: Element): Metrics {
  return { top: scrollTop, view: clientHeight, whole: scrollHeight };
}

function rowAt(inside: Element, slot: string): HTMLElement | null {
  return inside.querySelector<HTMLElement>(`[data-slot="${CSS.escape(slot)}"]`);
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
  if (!(row instanceof HTMLElement) || offsetOf(element, row) > element.clientHeight) return null;
  const inner = firstBelow(row.querySelectorAll(".prose > *"), top);
  return { key: row.dataset["row"]!, by: "row", offset: offsetOf(element, row), inner, innerOffset: inner === null ? 0 : offsetOf(element, inner) };
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
function moved(element: Element, inside: Element, anchor: Standing["anchor"], locate: (key: string, by: By) => number | null): number {
  if (anchor === null) return 0;
  if (anchor.inner?.isConnected) return correction({ key: anchor.key, offset: anchor.innerOffset }, offsetOf(element, anchor.inner));
  const row = inside.querySelector(`[data-${anchor.by}="${CSS.escape(anchor.key)}"]`);
  if (row !== null) return correction(anchor, offsetOf(element, row));
  const far = locate(anchor.key, anchor.by);
  return correction(anchor, far === null ? null : far + offsetOf(element, inside));
}
