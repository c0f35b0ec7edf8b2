// The list of conversations: grouped by time, loaded as it is scrolled, and only what is seen is in the document. Arrows
// move through it; Tab stops at one row alone.
import { useInfiniteQuery } from "@tanstack/react-query";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Button } from "../controls/button";
import { onMac } from "../keys/keys";
import { useSpeech } from "../words/speech";
import { askToDelete } from "./deletion";
import { linesOf, loaded, neighbour, type Group, type Line } from "./groups";
import { sidebarQuery } from "./list";
import { edit } from "./rename";
import { focusRow, Row } from "./row";
import { useToday, zone } from "./today";

/** Pixels: what a line is thought to measure until it is measured; lines near the end that make the next page load. */
const lineHeight = 38;
const near = 12;

export function Conversations({ current, onOpen }: { current: string | null; onOpen: () => void }) {
  const { say } = useSpeech();
  const list = useInfiniteQuery(sidebarQuery);
  const today = useToday();
  const conversations = useMemo(() => loaded(list.data?.pages ?? []), [list.data]);
  const lines = useMemo(() => linesOf(conversations, today, zone), [conversations, today]);
  if (list.isError && list.data === undefined) {
    return (
      <div className="px-4.5 py-4 text-sm text-soft">
        <p>{say("rooms.list.failed")}</p>
        <Button className="mt-3" icon="retry" onClick={() => void list.refetch()}>
          {say("rooms.again")}
        </Button>
      </div>
    );
  }
  if (list.data === undefined) return <Waiting />;
  if (lines.length === 0) return <p className="px-4.5 py-4 text-sm text-soft">{say("rooms.list.empty")}</p>;
  return <Lines lines={lines} current={current} onOpen={onOpen} more={list.hasNextPage && !list.isFetchingNextPage ? () => void list.fetchNextPage() : null} />;
}

function Waiting() {
  const { say } = useSpeech();
  return (
    <div role="status" className="flex flex-col gap-4 px-4.5 py-4">
      <span className="sr-only">{say("rooms.list.loading")}</span>
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
  /** Loads the next page, when there is one and it is not on its way. */
  more: (() => void) | null;
}

function Lines({ lines, current, onOpen, more }: LinesProps) {
  const { say } = useSpeech();
  const scroller = useRef<HTMLDivElement>(null);
  const { stop, setStop, move } = useRoving(lines, current);
  const stopAt = lines.findIndex((line) => line.key === stop);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    getItemKey: (at) => lines[at]!.key,
    overscan: 8,
    // The row where Tab stops stays in the document, however far one scrolls: else Tab would pass the list by.
    rangeExtractor: useCallback((range: Parameters<typeof defaultRangeExtractor>[0]) => [...new Set([...defaultRangeExtractor(range), ...(stopAt >= 0 ? [stopAt] : [])])].sort((a, b) => a - b), [stopAt]),
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= lines.length - near) more?.();
  }, [last, lines.length, more]);
  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[stopAt];
    if (line?.kind !== "conversation" || !(event.target instanceof HTMLElement) || event.target.dataset["conversation"] === undefined || event.ctrlKey || event.altKey) return;
    const deletes = onMac ? event.metaKey && event.key === "Backspace" : event.key === "Delete";
    if (event.metaKey && !deletes) return;
    const target = neighbour(lines, stop, event.key);
    if (target !== null) {
      rows.scrollToIndex(lines.findIndex(({ key }) => key === target));
      move(target);
    } else if (event.key === "F2") edit(line.key, "row");
    else if (deletes) askToDelete(line.conversation);
    else return;
    event.preventDefault();
  };
  return (
    <div ref={scroller} className="min-h-0 grow overflow-y-auto overscroll-contain px-2 pb-4" tabIndex={-1}>
      {/* The keys are those of the links within. */}
      <ul aria-label={say("rooms.list.label")} onKeyDown={onKeyDown} className="relative" style={{ height: rows.getTotalSize() }}>
        {shown.map(({ index, key, start }) => {
          const line = lines[index]!;
          return (
            <li key={key} data-index={index} ref={rows.measureElement} className="absolute inset-x-0 top-0 pb-0.5" style={{ transform: `translateY(${start}px)` }}>
              {line.kind === "group" ? (
                <Heading group={line.group} />
              ) : (
                <Row conversation={line.conversation} current={line.key === current} stop={line.key === stop} onFocus={setStop} onOpen={onOpen} />
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** Which row Tab stops at: the last one that had focus, else the open one, else the first. move gives focus to another. */
function useRoving(lines: readonly Line[], current: string | null) {
  const [chosen, setStop] = useState<string | null>(null);
  const wanted = useRef<string | null>(null);
  const has = (id: string | null) => id !== null && lines.some(({ key }) => key === id);
  const stop = has(chosen) ? chosen : has(current) ? current : (lines.find(({ kind }) => kind === "conversation")?.key ?? null);
  useEffect(() => {
    if (wanted.current === null || wanted.current !== stop) return;
    focusRow(wanted.current);
    wanted.current = null;
  });
  const move = (id: string) => {
    wanted.current = id;
    setStop(id);
  };
  return { stop, setStop, move };
}

function Heading({ group }: { group: Group }) {
  const { say, intl } = useSpeech();
  return (
    <h2 className="px-2.5 pt-4 pb-1 text-xs font-medium text-faint">
      {group.name === "earlier" ? intl.formatDate(group.month, { month: "long", year: "numeric", timeZone: "UTC" }) : say(`rooms.group.${group.name}`)}
    </h2>
  );
}
