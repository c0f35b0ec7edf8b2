// The find bar of a long conversation, whose rows are not all in the document, so that the browser cannot search them.
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import { Button, IconButton } from "../../controls/button";
import { keyOf, onMac } from "../../keys/keys";
import { useLocalization } from "../../messages/localization";
import "./find-bar.css";
import { indexOf, type Match } from "../../parts/find";
import { highlightMatches, removeHighlights } from "./find-ranges";
import type { RowLocator } from "./list";
import { isShown, maxAttempts, scrollTo, steadyFrames } from "./reveal";
import type { Row } from "./rows";
import { useMatches } from "./use-matches";
import type { Scroll } from "./use-scroll";

/** The most pages of older messages that are loaded by themselves to find a text. */
const maxPages = 50;

interface FindBarProps {
  rows: readonly Row[];
  scroll: Pick<Scroll, "scroller" | "content">;
  locator: RefObject<RowLocator | null>;
  hasOlder: boolean;
  onOlder: () => void;
  onClose: () => void;
}

export function FindBar({ rows, scroll, locator, hasOlder, onOlder, onClose }: FindBarProps) {
  const { t } = useLocalization();
  const field = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState("");
  const matches = useMatches(rows, query);
  const [current, setCurrent] = useState<Match | null>(null);
  const { list } = matches;
  const order = useMemo(() => new Map(rows.map(({ key }, at) => [key, at])), [rows]);
  const at = useMemo(
    () => indexOf(current, list, order, order.get(firstVisible(scroll.content.current) ?? "") ?? 0),
    [current, list, order, scroll.content],
  );
  const match = list[at] ?? null;
  useEffect(() => field.current?.focus(), []);
  // Later searches start from the match that is shown now.
  useEffect(() => setCurrent(match), [match]);
  const { loadOlder, loaded } = useOlder(rows, onOlder);
  // A text that no loaded message has is looked for in the older ones.
  const first = rows[0]?.key;
  const searching = matches.query !== "" && list.length === 0 && hasOlder && loaded < maxPages;
  useEffect(() => {
    if (searching) loadOlder();
  }, [searching, first]);
  useHighlights(scroll, locator, matches.query, match?.key ?? null, match?.nth ?? 0, loaded);

  const go = (by: 1 | -1) => list.length > 0 && setCurrent(list[(at + by + list.length) % list.length]!);
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
  return (
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
          {matches.query !== "" &&
            !searching &&
            (list.length === 0
              ? t("transcript.find.none")
              : t("transcript.find.count", { at: at + 1, count: list.length }))}
        </span>
        <IconButton
          size="small"
          icon="chevronDown"
          className="rotate-180"
          label={t("transcript.find.previous")}
          onClick={() => go(-1)}
        />
        <IconButton size="small" icon="chevronDown" label={t("transcript.find.next")} onClick={() => go(1)} />
        <IconButton size="small" icon="close" label={t("transcript.find.close")} onClick={onClose} />
      </div>
      <p className="flex flex-wrap items-center gap-x-1 px-2 text-xs text-faint">
        {t(hasOlder ? "transcript.find.not_older" : "transcript.find.scope")}
        {hasOlder && (
          <Button
            look="quiet"
            className="-me-2 ms-auto"
            onClick={() => {
              loadOlder();
              field.current?.focus(); // the button disappears with the oldest message
            }}
          >
            {t("transcript.find.older")}
          </Button>
        )}
      </p>
    </search>
  );
}

/** Loads older rows on request. loaded counts the loads, after each of which the current match is shown again. */
function useOlder(rows: readonly Row[], onOlder: () => void): { loadOlder: () => void; loaded: number } {
  const [loaded, setLoaded] = useState(0);
  /** The first row before a requested load; null: none is requested. */
  const before = useRef<string | null>(null);
  const first = rows[0]?.key ?? null;
  useEffect(() => {
    if (before.current === null || before.current === first) return;
    before.current = null;
    setLoaded((count) => count + 1);
  }, [first]);
  const loadOlder = () => {
    before.current = first;
    onOlder();
  };
  return { loadOlder, loaded };
}

/** Highlights the matches in the rows that are displayed, and scrolls to the current match when it or loaded changes. */
function useHighlights(
  { scroller, content }: FindBarProps["scroll"],
  locator: FindBarProps["locator"],
  query: string,
  key: string | null,
  nth: number,
  loaded: number,
): void {
  useEffect(() => removeHighlights, []);
  useEffect(() => {
    const [view, inside] = [scroller.current, content.current];
    if (view === null || inside === null) return;
    // Rows that come into view are measured, which moves the match, until it stays at its position.
    let attempts = key === null ? 0 : maxAttempts;
    let steady = 0;
    const update = () => {
      const range = highlightMatches(inside, query, key === null ? null : { key, nth });
      if (attempts === 0 || key === null) return;
      attempts -= 1;
      // A match in a folded part of a message has no range: the message is shown.
      const found = range ?? inside.querySelector(`[data-row="${CSS.escape(key)}"]`);
      if (found !== null) steady = isShown(view, found.getBoundingClientRect()) ? steady + 1 : 0;
      else scrollTo(view, locator.current?.locate(key, "row") ?? view.scrollTop);
      if (steady === steadyFrames) attempts = 0;
      else frame = requestAnimationFrame(update);
    };
    let frame = requestAnimationFrame(update);
    const observer = new MutationObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(update);
    });
    observer.observe(inside, { subtree: true, childList: true, characterData: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
    };
  }, [scroller, content, locator, query, key, nth, loaded]);
}

/** Returns the key of the first visible row. */
function firstVisible(content: Element | null): string | undefined {
  const top = content?.closest("[data-scroll]")?.getBoundingClientRect().top ?? 0;
  return [...(content?.querySelectorAll<HTMLElement>("[data-row]") ?? [])].find(
    (row) => row.getBoundingClientRect().bottom > top,
  )?.dataset["row"];
}
