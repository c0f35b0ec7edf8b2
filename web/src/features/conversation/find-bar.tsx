// The find bar of a long conversation, whose rows are not all in the document, so that the browser cannot search them.
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import { Button, IconButton } from "../../controls/button";
import { keyOf, onMac } from "../../keys/keys";
import { findingMessages } from "../../messages/finding";
import { useLocalization, useMessages } from "../../messages/localization";
import "./find-bar.css";
import { type Match } from "../../parts/find";
import { findAgain } from "./find-query";
import { Marks, removeHighlights, unfold } from "./find-ranges";
import { FindTicks } from "./find-ticks";
import type { RowLocator } from "./list";
import { isShown, maxAttempts, scrollTo, steadyFrames } from "./reveal";
import type { Row } from "./rows";
import { useMatches } from "./use-matches";
import type { Scroll } from "./use-scroll";

interface FindBarProps {
  conversation: string;
  branch: string | undefined;
  rows: readonly Row[];
  scroll: Pick<Scroll, "scroller" | "content">;
  locator: RefObject<RowLocator | null>;
  hasOlder: boolean;
  onOlder: () => void;
  onClose: () => void;
}

export function FindBar({ conversation, branch, rows, scroll, locator, hasOlder, onOlder, onClose }: FindBarProps) {
  const { t } = useLocalization();
  const finding = useMessages(findingMessages);
  const field = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState("");
  const matches = useMatches({ conversation, branch, rows, hasOlder }, query);
  const [current, setCurrent] = useState<Match | null>(null);
  const { list, searching } = matches;
  const order = useMemo(() => new Map(rows.map(({ key }, at) => [key, at])), [rows]);
  const at = useMemo(
    () => list.indexOf(current, order, order.get(firstVisible(scroll.content.current) ?? "") ?? 0),
    [current, list, order, scroll.content],
  );
  const match = useMemo(() => list.at(at), [list, at]);
  useEffect(() => field.current?.focus(), []);
  // Later searches start from the match that is shown now.
  useEffect(() => setCurrent(match), [match]);
  const loaded = match !== null && order.has(match.key);
  useOlder(rows, match !== null && !loaded && hasOlder, onOlder);
  useHighlights(scroll, locator, matches.query, loaded ? match.key : null, match?.nth ?? 0);

  const go = (by: 1 | -1) => list.length > 0 && setCurrent(list.at((at + by + list.length) % list.length));
  const goRef = useRef(go);
  goRef.current = go;
  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent) => {
      const again = event.key === "F3" || (keyOf(event) === "G" && (onMac ? event.metaKey : event.ctrlKey));
      if (!again || event.altKey) return;
      event.preventDefault();
      goRef.current(event.shiftKey ? -1 : 1);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  const pressed = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.stopPropagation(); // otherwise it would stop the answer
      onClose();
    } else if (event.key === "Enter" && event.target === field.current) {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    }
  };
  const status = () => {
    if (matches.query === "" && query.trim() === "") return "";
    if (searching) return finding("finding.searching");
    return list.length === 0 ? finding("finding.none") : finding("finding.count", { at: at + 1, count: list.length });
  };
  return (
    <>
      <search
        aria-label={t("transcript.find")}
        onKeyDown={pressed}
        className="absolute end-3 top-2 z-20 w-md max-w-[calc(100%-1.5rem)] rounded-lg border border-line bg-raised p-1.5 shadow-float"
      >
        <div className="flex items-center gap-0.5">
          <input
            ref={field}
            type="text"
            dir={query === "" ? undefined : "auto"}
            enterKeyHint="search"
            autoComplete="off"
            aria-label={t("transcript.find")}
            placeholder={t("transcript.find")}
            value={query}
            onChange={({ target }) => setQuery(target.value)}
            className="min-h-9 min-w-0 grow rounded-md bg-transparent px-2 -outline-offset-2 text-base placeholder:text-faint md:text-sm"
          />
          <span role="status" className="shrink-0 px-1 text-xs text-soft tabular-nums">
            {status()}
          </span>
          <IconButton
            size="small"
            icon="chevronDown"
            className="rotate-180"
            label={finding("finding.previous")}
            onClick={() => go(-1)}
          />
          <IconButton size="small" icon="chevronDown" label={finding("finding.next")} onClick={() => go(1)} />
          <IconButton size="small" icon="close" label={finding("finding.close")} onClick={onClose} />
        </div>
        <div role="alert">
          {matches.failed && (
            <p className="flex flex-wrap items-center gap-x-1 px-2 text-xs text-danger">
              {finding("finding.failed")}
              <Button
                look="quiet"
                className="-me-2 ms-auto"
                onClick={() => {
                  findAgain(conversation);
                  field.current?.focus(); // the button disappears
                }}
              >
                {finding("finding.retry")}
              </Button>
            </p>
          )}
        </div>
      </search>
      <FindTicks list={list} places={matches.places} at={at} onGo={(to) => setCurrent(list.at(to))} />
    </>
  );
}

/** Loads one page of older rows after the other while they are wanted. */
function useOlder(rows: readonly Row[], wanted: boolean, onOlder: () => void): void {
  const first = rows[0]?.key;
  const load = useRef(onOlder);
  load.current = onOlder;
  useEffect(() => {
    if (wanted) load.current();
  }, [wanted, first]);
}

/** Highlights the matches in the rows that are displayed, and scrolls to the current match when it changes. */
function useHighlights(
  { scroller, content }: FindBarProps["scroll"],
  locator: FindBarProps["locator"],
  query: string,
  key: string | null,
  nth: number,
): void {
  useEffect(() => removeHighlights, []);
  useEffect(() => {
    const [view, inside] = [scroller.current, content.current];
    if (view === null || inside === null) return;
    const marks = new Marks(inside, query);
    let changes: MutationRecord[] = [];
    // Rows that come into view are measured, which moves the match, until it stays at its position.
    let attempts = key === null ? 0 : maxAttempts;
    let steady = 0;
    const update = () => {
      marks.update(changes);
      changes = [];
      const range = key === null ? null : marks.select({ key, nth });
      if (attempts === 0 || key === null) return;
      attempts -= 1;
      if (range !== null) unfold(range);
      // A match in a part of a message that is not displayed has no range: the message is shown.
      const found = range ?? inside.querySelector(`[data-row="${CSS.escape(key)}"]`);
      if (found !== null) steady = isShown(view, found.getBoundingClientRect()) ? steady + 1 : 0;
      else scrollTo(view, locator.current?.locate(key, "row") ?? view.scrollTop);
      if (steady === steadyFrames) attempts = 0;
      else frame = requestAnimationFrame(update);
    };
    let frame = requestAnimationFrame(update);
    const observer = new MutationObserver((records) => {
      changes.push(...records);
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(update);
    });
    observer.observe(inside, { subtree: true, childList: true, characterData: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
    };
  }, [scroller, content, locator, query, key, nth]);
}

/** Returns the key of the first visible row. */
function firstVisible(content: Element | null): string | undefined {
  const top = content?.closest("[data-scroll]")?.getBoundingClientRect().top ?? 0;
  return [...(content?.querySelectorAll<HTMLElement>("[data-row]") ?? [])].find(
    (row) => row.getBoundingClientRect().bottom > top,
  )?.dataset["row"];
}
