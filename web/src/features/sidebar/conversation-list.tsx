// The list of conversations: grouped by time, loaded page by page while scrolling; only lines near the visible area are
// in the document. Arrow keys move through it; the Tab key stops at only one row.
import { useInfiniteQuery } from "@tanstack/react-query";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import type { Conversation } from "../../api/client";
import { conversationsQuery } from "../../api/queries";
import { Button } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { useMedia } from "../../controls/media";
import { onMac } from "../../keys/keys";
import { useLocalization } from "../../messages/localization";
import { confirmDeletion, useDeletion } from "./deletion";
import { haveSameKeys, linesOf, neighbour, type Group, type Line } from "./groups";
import { useListedParts } from "./listed-parts";
import { isStored } from "../../api/provisional";
import { editTitle } from "./editing";
import { TitleEditor } from "./organizing";
import { focusRow, Row } from "./row";
import { selectTo, setSelectable, stopSelecting, useSelecting } from "./selecting";
import { useToday, zone } from "../../controls/today";

export const SelectionToolbar = deferred(() => import("./selection-toolbar").then((m) => m.SelectionToolbar), {
  onFailure: ({ list }) => void stopSelecting(list),
});

const preloadEditor = (): void => void TitleEditor.preload().catch(() => {});

/** The height of a line in rem, if the pointer is a mouse and if it is a finger; a heading differs until it is measured. */
const lineHeights = { fine: 2.375, coarse: 2.875 };
/** The next page loads when one of this many last lines is rendered. */
const loadAhead = 12;

export function Conversations({ current, onOpen }: { current: string | null; onOpen: () => void }) {
  const { t } = useLocalization();
  const list = useInfiniteQuery(conversationsQuery);
  const today = useToday();
  const parts = useListedParts(list.data?.pages);
  const lines = useMemo(() => linesOf(parts, today, zone()), [parts, today]);
  const selecting = useSelecting((one) => one.list === "sidebar");
  const conversations = useMemo(() => (selecting ? parts.flat() : []), [parts, selecting]);
  useSelectable(parts);
  if (list.isError && list.data === undefined) {
    return (
      <div className="px-4.5 py-4 text-sm text-soft">
        <p>{t("pages.list.failed")}</p>
        <Button className="mt-3" icon="retry" onClick={() => void list.refetch()}>
          {t("pages.retry")}
        </Button>
      </div>
    );
  }
  if (list.data === undefined) return <ListPlaceholder />;
  if (lines.length === 0) return <p className="px-4.5 py-4 text-sm text-soft">{t("pages.list.empty")}</p>;
  return (
    <>
      {selecting && <SelectionToolbar list="sidebar" conversations={conversations} />}
      <Lines
        lines={lines}
        current={current}
        onOpen={onOpen}
        more={list.hasNextPage && !list.isFetching ? () => void list.fetchNextPage() : null}
      />
    </>
  );
}

/** Keeps the selection to the conversations that are listed, stored and not being deleted. */
function useSelectable(parts: readonly (readonly Conversation[])[]): void {
  const deleting = useDeletion((deletion) => deletion.pending);
  useEffect(() => {
    const selectable = (one: Conversation) => isStored(one) && !deleting.has(one.conversation_id);
    setSelectable("sidebar", () => parts.flatMap((part) => part.filter(selectable).map((one) => one.conversation_id)));
  }, [parts, deleting]);
  useEffect(() => () => void stopSelecting("sidebar"), []);
}

function ListPlaceholder() {
  const { t } = useLocalization();
  return (
    <div role="status" className="flex flex-col gap-4 px-4.5 py-4">
      <span className="sr-only">{t("pages.list.loading")}</span>
      {["w-3/4", "w-1/2", "w-2/3"].map((width) => (
        <span key={width} className={`h-3 rounded-sm bg-hover ${width}`} />
      ))}
    </div>
  );
}

interface LinesProps {
  lines: readonly Line[];
  current: string | null;
  onOpen: () => void;
  /** Loads the next page; null: there is none, or the list is being fetched: another fetch would cancel that one. */
  more: (() => void) | null;
}

/**
 * Returns a function that returns the keys of lines. It is another one only when the keys change, because the virtualizer then
 * computes the position of every line again.
 */
function useKeyOf(lines: readonly Line[]): (at: number) => string {
  const known = useRef(lines);
  const compared = useRef(lines); // a scroll renders the same lines many times
  if (compared.current !== lines) {
    compared.current = lines;
    if (!haveSameKeys(known.current, lines)) known.current = lines;
  }
  const { current } = known;
  return useCallback((at) => current[at]!.key, [current]);
}

function Lines({ lines, current, onOpen, more }: LinesProps) {
  const { t } = useLocalization();
  const selected = useSelecting((selecting) => (selecting.list === "sidebar" ? selecting.selection.ids : null));
  const scroller = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(false);
  const { stop, stopAt, setStop, move } = useRovingTabIndex(lines, current);
  const coarse = useMedia("(pointer: coarse)");
  const lineHeight = useMemo(
    () => lineHeights[coarse ? "coarse" : "fine"] * parseFloat(getComputedStyle(document.documentElement).fontSize),
    [coarse],
  );
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    getItemKey: useKeyOf(lines),
    overscan: 8,
    // The row where Tab stops stays in the document at every scroll position; otherwise Tab would skip the list.
    rangeExtractor: useCallback(
      (range: Parameters<typeof defaultRangeExtractor>[0]) =>
        [...new Set([...defaultRangeExtractor(range), ...(stopAt >= 0 ? [stopAt] : [])])].sort((a, b) => a - b),
      [stopAt],
    ),
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= lines.length - loadAhead) more?.();
  }, [last, lines.length, more]);
  const selectedOr = (one: Conversation): readonly Conversation[] =>
    selected === null || selected.size === 0
      ? [one]
      : lines.flatMap((line) => (line.kind === "conversation" && selected.has(line.key) ? [line.conversation] : []));
  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[stopAt];
    if (
      line?.kind !== "conversation" ||
      !(event.target instanceof HTMLElement) ||
      event.target.dataset["conversation"] === undefined ||
      event.ctrlKey ||
      event.altKey
    )
      return;
    const deletes = onMac ? event.metaKey && event.key === "Backspace" : event.key === "Delete";
    if (event.metaKey && !deletes) return;
    const target = neighbour(lines, stop, event.key);
    if (target !== null) {
      if (event.shiftKey && isStored(line.conversation)) selectTo("sidebar", line.key, target);
      rows.scrollToIndex(lines.findIndex(({ key }) => key === target));
      move(target);
    } else if (!isStored(line.conversation)) return;
    else if (event.key === "F2" && selected === null) editTitle(line.key, "row");
    else if (deletes) confirmDeletion(...selectedOr(line.conversation));
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={scroller}
      className={`min-h-0 grow overflow-y-auto overscroll-contain border-t px-2 pb-4 short:h-48 short:shrink-0 short:overscroll-auto ${scrolled ? "border-line" : "border-transparent"}`}
      tabIndex={-1}
      data-list="sidebar"
      onScroll={(event) => setScrolled(event.currentTarget.scrollTop > 0)}
    >
      {/* The handler acts only on keys pressed in the links inside. */}
      <ul
        aria-label={t("pages.list.label")}
        onKeyDown={onKeyDown}
        onFocus={preloadEditor}
        onPointerEnter={preloadEditor}
        className="relative"
        style={{ height: rows.getTotalSize() }}
      >
        {shown.map(({ index, key, start }) => {
          const line = lines[index]!;
          return (
            <li
              key={key}
              data-index={index}
              ref={rows.measureElement}
              className="absolute inset-x-0 top-0 pb-0.5"
              style={{ transform: `translateY(${start}px)` }}
            >
              {line.kind === "group" ? (
                <Heading group={line.group} />
              ) : (
                <Row
                  conversation={line.conversation}
                  current={line.key === current}
                  stop={line.key === stop}
                  selected={selected && selected.has(line.key)}
                  onFocus={setStop}
                  onOpen={onOpen}
                />
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/**
 * Returns the row where Tab stops: the last one that had the focus, else the open conversation, else the first. move
 * gives the focus to another row.
 */
function useRovingTabIndex(lines: readonly Line[], current: string | null) {
  const [focused, setStop] = useState<string | null>(null);
  const wanted = useRef<string | null>(null);
  const stopAt = useMemo(() => {
    const of = (id: string | null) => (id === null ? -1 : lines.findIndex(({ key }) => key === id));
    const at = of(focused);
    if (at >= 0) return at;
    const open = of(current);
    return open >= 0 ? open : lines.findIndex(({ kind }) => kind === "conversation");
  }, [lines, focused, current]);
  const stop = lines[stopAt]?.key ?? null;
  useEffect(() => {
    if (wanted.current === null || wanted.current !== stop) return;
    focusRow(wanted.current);
    wanted.current = null;
  });
  const move = (id: string) => {
    wanted.current = id;
    setStop(id);
  };
  return { stop, stopAt, setStop, move };
}

function Heading({ group }: { group: Group }) {
  const { t, intl } = useLocalization();
  return (
    <h2 className="px-2.5 pt-4 pb-1 text-xs font-medium text-faint">
      {group.name === "earlier"
        ? intl.formatDate(group.month, { month: "long", year: "numeric", timeZone: "UTC" })
        : t(`pages.group.${group.name}`)}
    </h2>
  );
}
