// The rows of a transcript. Up to 200 rows are all in the document, so that the browser's search finds them; of more
// rows, only those near the visible area.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useImperativeHandle, useLayoutEffect, useState, type RefObject } from "react";
import { useLocalization } from "../../messages/localization";
import { usePrinting } from "../../parts/printing";
import { Answer } from "./answer";
import { UserMessage } from "./user-message";
import type { Row } from "./rows";
import type { Reading } from "./scroll-memory";
import type { RowReference, Scroll } from "./use-scroll";

export const maxUnvirtualized = 200;
/** The estimated heights of rows in pixels, until they are measured. */
const estimatedHeight = { question: 96, answer: 360 };

/** Locates rows that are not in the document. */
export interface RowLocator {
  /** Returns the distance of a row from the top of the list in pixels; null: unknown, or there is no such row. */
  locate(key: string, by: RowReference): number | null;
}

interface ListProps {
  rows: readonly Row[];
  scroll: Scroll;
  locator: RefObject<RowLocator | null>;
  /** The key of the row of the user message to edit; null: none. */
  edit: string | null;
}

export function List(props: ListProps) {
  const printing = usePrinting();
  return props.rows.length > maxUnvirtualized && !printing ? <VirtualList {...props} /> : <PlainList {...props} />;
}

function PlainList({ rows, locator, edit, scroll }: ListProps) {
  useImperativeHandle(locator, () => ({ locate: () => null }), []);
  useLayoutEffect(scroll.settle, [rows, scroll.settle]);
  return rows.map((row, at) => (
    <Message key={row.key} row={row} last={at === rows.length - 1} edit={row.key === edit} />
  ));
}

function VirtualList({ rows, scroll, locator, edit }: ListProps) {
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.scroller.current,
    getItemKey: (at) => rows[at]!.key,
    estimateSize: (at) => estimatedHeight[rows[at]!.kind],
    overscan: 6,
    initialOffset: () => scroll.scroller.current?.scrollTop ?? firstOffset(rows, scroll.read()),
  });
  // The list is rendered before the element that scrolls is attached, and the virtualizer looks for that when it renders.
  const [, renderAgain] = useState(false);
  useEffect(() => renderAgain(true), []);
  // use-scroll.ts keeps the rows at their positions.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = () => false;
  useImperativeHandle(locator, () => ({
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
            <div
              key={key}
              ref={virtualizer.measureElement}
              data-index={index}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${start}px)` }}
            >
              <Message row={row} last={index === rows.length - 1} edit={row.key === edit} />
            </div>
          )
        );
      })}
    </div>
  );
}

/** Returns where a new list is scrolled to: approximately to the row that was read before, else to the end. */
function firstOffset(rows: readonly Row[], reading: Reading | null): number {
  if (reading === null) return Number.MAX_SAFE_INTEGER;
  const at = rows.findIndex(({ key }) => key === reading.key);
  return rows.slice(0, at).reduce((sum, { kind }) => sum + estimatedHeight[kind], 0);
}

/** Returns the slot that a row shares with its other versions: the identifier of their parent, or "first". */
function slotOf(row: Row): string | undefined {
  return row.message === null ? undefined : (row.message.parent_message_id ?? "first");
}

const Message = memo(function Message({ row, last, edit }: { row: Row; last: boolean; edit: boolean }) {
  const { t } = useLocalization();
  const question = row.kind === "question";
  return (
    <article
      data-row={row.key}
      data-slot={slotOf(row)}
      data-kind={row.kind}
      data-message={row.key}
      tabIndex={-1}
      className={`group/row flow-root scroll-mt-4 rounded-md outline-offset-8 ${question ? "pb-4.5" : "[&>h2+*]:mt-0"} ${question && row.message !== null ? "pointer-coarse:pb-0" : ""} ${question ? "pointer-coarse:pt-4" : ""}`}
    >
      <h2 className="sr-only">{t(question ? "transcript.you_said" : "transcript.answer")}</h2>
      {question ? (
        <UserMessage message={row.message} outgoing={row.outgoing} edit={edit} />
      ) : (
        <Answer message={row.message} turnID={row.turnID} last={last} />
      )}
    </article>
  );
});
