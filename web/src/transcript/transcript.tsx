// The transcript of a conversation: its rows, where one stands in them, and the way back to the newest.
import { useEffect, useMemo, useRef, useState } from "react";
import { sentHere } from "../api/outbox";
import { markRead } from "../api/queries";
import { useWishes } from "../composer/wishes";
import { Icon } from "../controls/icon";
import { useSpeech } from "../words/speech";
import { List, type Finder, type Wish } from "./list";
import { Room } from "./room";
import { isFinal, newSince, type Row } from "./rows";
import { Status } from "./status";
import "./transcript.css";
import type { Room as Conversation } from "./use-conversation";
import { useScroll } from "./use-scroll";

export function Transcript({ id, room }: { id: string; room: Conversation }) {
  const { say } = useSpeech();
  const { rows, page, turnID } = room;
  const finder = useRef<Finder | null>(null);
  const older = useRef(room.loadOlder);
  older.current = room.loadOlder;
  const scroll = useScroll(
    () => older.current(),
    (key, by) => finder.current?.locate(key, by) ?? null,
  );
  const { following, hold } = scroll;
  const seen = useSeen(rows, following);
  const wish = useEditWish(rows);
  useNewQuestion(rows, scroll.toQuestion);
  useRead(id, rows, following, page?.unread === true);
  const busy = turnID !== null || page?.live_turn_id != null;
  const context = useMemo(() => ({ id, busy, scroll: { hold } }), [id, busy, hold]);
  return (
    <Room value={context}>
      <div className="relative flex min-h-0 grow flex-col short:h-48 short:shrink-0">
        <div ref={scroll.scroller} data-scroll="" className="min-h-0 grow overflow-y-auto overscroll-contain [overflow-anchor:none] md:[scrollbar-gutter:stable_both-edges]">
          <div ref={scroll.content} className="mx-auto w-full max-w-(--width-prose) px-4 pt-2 pb-6">
            <div role="log" aria-live="off" aria-label={say("transcript.name")}>
              {room.hasOlder && <p className="h-10 animate-late text-center text-sm text-faint">{say("transcript.older")}</p>}
              <List rows={rows} scroll={scroll} finder={finder} wish={wish} />
            </div>
          </div>
          <div ref={scroll.room} aria-hidden="true" />
        </div>
        {!following && <Jump count={newSince(rows, seen)} live={turnID !== null} onJump={scroll.toEnd} />}
      </div>
      <Status turnID={turnID} rows={rows} />
    </Room>
  );
}

function Jump({ count, live, onJump }: { count: number; live: boolean; onJump: () => void }) {
  const { say } = useSpeech();
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center">
      <button type="button" onClick={onJump} className="pointer-events-auto inline-flex min-h-9 items-center gap-2 rounded-full border border-line bg-raised ps-3 pe-4 text-sm text-soft shadow-float hover:text-ink pointer-coarse:min-h-11">
        <span className={live ? "text-tide" : ""}>
          <Icon name="arrowDown" size={16} />
        </span>
        {count > 0 ? say("transcript.jump_new", { count }) : say("transcript.jump")}
      </button>
    </div>
  );
}

/** The last row that stood there when the reader was at the end. */
function useSeen(rows: readonly Row[], following: boolean): string | null {
  const [seen, setSeen] = useState<string | null>(null);
  const last = rows.at(-1)?.key ?? null;
  useEffect(() => {
    if (following) setSeen(last);
  }, [following, last]);
  return seen;
}

/** Brings what was just sent from here to the top of the window. What another tab sends moves nobody. */
function useNewQuestion(rows: readonly Row[], toQuestion: () => void): void {
  const sent = rows.findLast(({ outgoing }) => outgoing?.state === "sending" && sentHere(outgoing.key))?.key ?? null;
  useEffect(() => {
    if (sent !== null) toQuestion();
  }, [sent, toQuestion]);
}

/** Tells the service how far was read, once the end was seen. */
function useRead(id: string, rows: readonly Row[], following: boolean, unread: boolean): void {
  const last = rows.at(-1)?.message ?? null;
  const newest = unread && following && isFinal(last) ? last.message_id : null;
  useEffect(() => {
    if (newest === null) return;
    const seen = () => document.removeEventListener("visibilitychange", mark);
    let marking = false;
    const mark = () => {
      if (marking || document.visibilityState !== "visible") return;
      marking = true;
      // When it is refused for good it stays unread, and is marked with the next look.
      markRead(id, newest).then(seen, () => void (marking = false));
    };
    document.addEventListener("visibilitychange", mark);
    mark();
    return seen;
  }, [id, newest]);
}

/** The last question, whenever it is wished to edit that since the room was entered. */
function useEditWish(rows: readonly Row[]): Wish {
  const count = useWishes(({ editLast }) => editLast);
  const known = useRef(count);
  const [wish, setWish] = useState<Wish>({ key: null, count });
  useEffect(() => {
    if (count === known.current) return;
    known.current = count;
    setWish({ key: rows.findLast((row) => row.kind === "question" && row.message !== null)?.key ?? null, count });
  }, [count, rows]);
  return wish;
}
