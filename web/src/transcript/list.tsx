// The rows of a transcript. Up to 200 all stand in the page, so that the browser's own search finds them; of more only
// those near to what is looked at.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useImperativeHandle, useLayoutEffect, type RefObject } from "react";
import { useSpeech } from "../words/speech";
import { Answer } from "./answer";
import { Question } from "./question";
import type { Row } from "./rows";
import type { By, Scroll } from "./use-scroll";

const mostInPage = 200;
/** Heights of rows that were not measured yet, in pixels. */
const guess = { question: 96, answer: 360 };

/** Finds the place of rows that are not in the page. */
export interface Finder {
  /** The distance of a row from the top of the list; null when there is no such row. */
  locate(key: string, by: By): number | null;
}

/** The question that is wished to be edited, and a count of such wishes. */
export interface Wish {
  key: string | null;
  count: number;
}

interface ListProps {
  rows: readonly Row[];
  scroll: Scroll;
  finder: RefObject<Finder | null>;
  wish: Wish;
}

export function List(props: ListProps) {
  return props.rows.length > mostInPage ? <Virtual {...props} /> : <Whole {...props} />;
}

function Whole({ rows, finder, wish, scroll }: ListProps) {
  useImperativeHandle(finder, () => ({ locate: () => null }), []);
  useLayoutEffect(scroll.settle, [rows, scroll.settle]);
  return rows.map((row, at) => <Message key={row.key} row={row} last={at === rows.length - 1} wished={row.key === wish.key ? wish.count : 0} />);
}

function Virtual({ rows, scroll, finder, wish }: ListProps) {
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.scroller.current,
    getItemKey: (at) => rows[at]!.key,
    estimateSize: (at) => guess[rows[at]!.kind],
    overscan: 6,
    initialOffset: () => scroll.scroller.current?.scrollTop ?? Number.MAX_SAFE_INTEGER,
  });
  // The room keeps things in their place by itself.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = () => false;
  useImperativeHandle(finder, () => ({
    locate(key, by) {
      const at = rows.findIndex((row) => (by === "row" ? row.key : slotOf(row)) === key);
      return at < 0 ? null : (virtualizer.measurementsCache[at]?.start ?? null);
    },
  }));
  const items = virtualizer.getVirtualItems();
  const size = virtualizer.getTotalSize();
  useLayoutEffect(scroll.settle);
  return (
    <div className="relative" style={{ height: size }}>
      {items.map(({ index, key, start }) => {
        const row = rows[index];
        return (
          row !== undefined && (
            <div key={key} ref={virtualizer.measureElement} data-index={index} className="absolute inset-x-0 top-0 flow-root" style={{ transform: `translateY(${start}px)` }}>
              <Message row={row} last={index === rows.length - 1} wished={row.key === wish.key ? wish.count : 0} />
            </div>
          )
        );
      })}
    </div>
  );
}

/** The place in the conversation that a row and its other versions share. */
function slotOf(row: Row): string | undefined {
  return row.message === null ? undefined : (row.message.parent_message_id ?? "first");
}

const Message = memo(function Message({ row, last, wished }: { row: Row; last: boolean; wished: number }) {
  const { say } = useSpeech();
  const question = row.kind === "question";
  return (
    <article data-row={row.key} data-slot={slotOf(row)} data-kind={row.kind} data-message={row.key} tabIndex={-1} className="group/row scroll-mt-4 rounded-md py-1.5 outline-offset-8">
      <h2 className="sr-only">{say(question ? "transcript.you_said" : "transcript.answer")}</h2>
      {question ? <Question message={row.message} outgoing={row.outgoing} wished={wished} /> : <Answer message={row.message} turnID={row.turnID} last={last} />}
    </article>
  );
});
