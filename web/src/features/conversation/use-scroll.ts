// Scrolls a transcript: follows its end while the reader is there; otherwise keeps the visible rows at their positions
// while rows above them grow, appear or disappear. The browser's scroll anchoring is off: not every browser has it, and
// none applies it at the very top.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import type { Reading } from "./scroll-memory";
import { correction, followsAfter, isAtEnd, spacerHeight, shouldLoadOlder, type Anchor, type Metrics } from "./scroll";

export interface Scroll {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** The empty space below the content, with which the last user message can be at the top. */
  spacer: RefObject<HTMLDivElement | null>;
  /** Whether the end is visible and followed. */
  following: boolean;
  toEnd(): void;
  /** Scrolls the last user message to the top and follows the end from there. */
  toQuestion(): void;
  /** Keeps the versions in a slot at their position while the displayed version changes. */
  hold(slot: string): void;
  /** Restores the scroll position after a change of the content. */
  settle(): void;
  /** Returns where the reader is; null: at the end. */
  read(): Reading | null;
}

/** How a row is identified: by its own key, or by the slot that it shares with its other versions. */
export type RowReference = "row" | "slot";

/** How often a position is restored at most, while rows around it are measured. */
const maxRestores = 60;

interface ScrollState {
  follows: boolean;
  /** The scroll position at the last check; a different value means that the reader has scrolled. */
  top: number;
  anchor: (Anchor & { by: RowReference; inner: Element | null; innerOffset: number }) | null;
  /** The held slot, the key of its row until another version replaces that row, and whether the row had the focus. */
  held: { slot: string; row: string; focused: boolean } | null;
  /** Whether the space below the content is maintained. */
  hasSpacer: boolean;
  /** How often the position of an earlier visit may still be restored; 0: the reader scrolls. */
  restores: number;
}

/**
 * locate returns the distance of a row that is not in the document from the top of the content; null: unknown. reading is
 * where the reader was in an earlier visit; null: the end is shown.
 */
export function useScroll(
  onOlder: () => void,
  locate: (key: string, by: RowReference) => number | null,
  reading: Reading | null,
): Scroll {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const stateRef = useRef<ScrollState>({
    follows: reading === null,
    top: 0,
    anchor: reading && { ...reading, by: "row", inner: null, innerOffset: 0 },
    held: null,
    hasSpacer: false,
    restores: reading === null ? 0 : maxRestores,
  });
  const [following, setFollowing] = useState(reading === null);
  const callbacks = useRef({ onOlder, locate });
  useLayoutEffect(() => void (callbacks.current = { onOlder, locate }));

  const follow = useCallback((follows: boolean) => {
    stateRef.current.follows = follows;
    setFollowing(follows);
  }, []);

  /** Updates the state if the reader has scrolled. */
  const syncScroll = useCallback(
    (element: HTMLElement, inside: HTMLElement) => {
      const state = stateRef.current;
      const now = metricsOf(element);
      if (state.restores > 0) return;
      if (Math.abs(now.top - state.top) < 1) return; // set by settle, not by the reader
      const follows = followsAfter(state.follows, state.top, now);
      state.top = now.top;
      if (follows !== state.follows) follow(follows);
      state.anchor = anchorIn(element, inside);
    },
    [follow],
  );

  const settle = useCallback(() => {
    const [element, inside, below, state] = [scroller.current, content.current, spacer.current, stateRef.current];
    if (element === null || inside === null || below === null) return;
    syncScroll(element, inside);
    if (state.hasSpacer) resizeSpacer(element, inside, below);
    state.anchor ??= anchorIn(element, inside);
    const to = state.follows
      ? element.scrollHeight - element.clientHeight
      : element.scrollTop + anchorShift(element, inside, state.anchor, callbacks.current.locate);
    const moves = Math.abs(element.scrollTop - to) >= 1;
    if (moves) element.scrollTop = to;
    if (state.restores > 0) state.restores = moves || rowOf(inside, state.anchor) === null ? state.restores - 1 : 0;
    state.top = element.scrollTop;
    const newRow = state.held === null ? null : rowAt(inside, state.held.slot);
    if (state.held !== null && newRow !== null && newRow.dataset["row"] !== state.held.row) {
      if (state.held.focused && document.activeElement === document.body) newRow.focus({ preventScroll: true });
      state.held = null;
      state.anchor = anchorIn(element, inside);
      if (isAtEnd(metricsOf(element))) follow(true);
    }
  }, [syncScroll, follow]);

  useEffect(() => {
    const [element, inside] = [scroller.current, content.current];
    if (element === null || inside === null) return;
    const older = () => shouldLoadOlder(metricsOf(element)) && callbacks.current.onOlder();
    const scrolled = () => {
      syncScroll(element, inside);
      older();
    };
    const observer = new ResizeObserver(() => {
      settle();
      older();
    });
    const inputs = ["wheel", "touchmove", "pointerdown", "keydown"];
    const interrupt = () => void (stateRef.current.restores = 0);
    element.addEventListener("scroll", scrolled, { passive: true });
    for (const input of inputs) window.addEventListener(input, interrupt, { passive: true, capture: true });
    observer.observe(inside);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      for (const input of inputs) window.removeEventListener(input, interrupt, true);
      observer.disconnect();
    };
  }, [syncScroll, settle]);

  const toEnd = useCallback(() => {
    follow(true);
    settle();
  }, [follow, settle]);
  const toQuestion = useCallback(() => {
    stateRef.current.hasSpacer = true;
    toEnd();
  }, [toEnd]);
  const hold = useCallback(
    (slot: string) => {
      const [element, inside] = [scroller.current, content.current];
      const row = inside === null ? null : rowAt(inside, slot);
      if (element === null || inside === null || row === null) return;
      // Otherwise a scroll earlier in this frame would count as a scroll away from the held slot.
      syncScroll(element, inside);
      follow(false);
      stateRef.current.held = { slot, row: row.dataset["row"]!, focused: row.contains(document.activeElement) };
      stateRef.current.anchor = { key: slot, by: "slot", offset: offsetOf(element, row), inner: null, innerOffset: 0 };
    },
    [syncScroll, follow],
  );
  const read = useCallback((): Reading | null => {
    const { follows, anchor } = stateRef.current;
    return follows || anchor === null || anchor.by === "slot" ? null : { key: anchor.key, offset: anchor.offset };
  }, []);
  return { scroller, content, spacer, following, toEnd, toQuestion, hold, settle, read };
}

function metricsOf({ scrollTop, clientHeight, scrollHeight }: Element): Metrics {
  return { top: scrollTop, viewHeight: clientHeight, contentHeight: scrollHeight };
}

function rowAt(inside: Element, slot: string): HTMLElement | null {
  return inside.querySelector<HTMLElement>(`[data-slot="${CSS.escape(slot)}"]`);
}

function offsetOf(element: Element, inside: Element): number {
  return inside.getBoundingClientRect().top - element.getBoundingClientRect().top;
}

function resizeSpacer(element: HTMLElement, inside: HTMLElement, below: HTMLElement): void {
  const question = [...inside.querySelectorAll('[data-kind="question"]')].at(-1);
  if (question === undefined) return;
  const used = inside.getBoundingClientRect().bottom - question.getBoundingClientRect().top;
  const height = `${spacerHeight(element.clientHeight, used)}px`;
  if (below.style.height !== height) below.style.height = height;
}

/** Returns the first visible row, and in it the first visible block of text. */
function anchorIn(element: Element, inside: Element): ScrollState["anchor"] {
  const top = element.getBoundingClientRect().top;
  const row = firstBelow(inside.querySelectorAll("[data-row]"), top);
  if (!(row instanceof HTMLElement) || offsetOf(element, row) > element.clientHeight) return null;
  const inner = firstBelow(row.querySelectorAll(".prose > *"), top);
  return {
    key: row.dataset["row"]!,
    by: "row",
    offset: offsetOf(element, row),
    inner,
    innerOffset: inner === null ? 0 : offsetOf(element, inner),
  };
}

/** Returns the first of some elements, in document order, whose bottom is below a line. */
function firstBelow(elements: NodeListOf<Element>, line: number): Element | null {
  let [from, to] = [0, elements.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elements[middle]!.getBoundingClientRect().bottom > line) to = middle;
    else from = middle + 1;
  }
  return elements[from] ?? null;
}

/** Returns the row of an anchor, if it is in the document. */
const rowOf = (inside: Element, anchor: ScrollState["anchor"]): Element | null =>
  anchor && inside.querySelector(`[data-${anchor.by}="${CSS.escape(anchor.key)}"]`);

/** Returns how far an anchor has moved from its offset, in pixels. */
function anchorShift(
  element: Element,
  inside: Element,
  anchor: ScrollState["anchor"],
  locate: (key: string, by: RowReference) => number | null,
): number {
  if (anchor === null) return 0;
  if (anchor.inner?.isConnected)
    return correction({ key: anchor.key, offset: anchor.innerOffset }, offsetOf(element, anchor.inner));
  const row = rowOf(inside, anchor);
  if (row !== null) return correction(anchor, offsetOf(element, row));
  const far = locate(anchor.key, anchor.by);
  return correction(anchor, far === null ? null : far + offsetOf(element, inside));
}
