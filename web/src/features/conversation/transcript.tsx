// The transcript of a conversation: its rows, the scroll position, and the button that jumps to the end.
import { useLocation } from "@tanstack/react-router";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { sentFromThisTab } from "../../api/outbox";
import { markRead } from "../../api/queries";
import { useComposerRequests } from "../composer";
import { Tasks } from "../research";
import { deferred } from "../../controls/deferred";
import { Icon } from "../../controls/icon";
import { useNoteShown } from "../../controls/later";
import { keyOf, onMac } from "../../keys/keys";
import { useLocalization } from "../../messages/localization";
import { List, maxUnvirtualized, type RowLocator } from "./list";
import { ConversationContext } from "./conversation-context";
import { isFinal, countRowsAfter, type Row } from "./rows";
import { keepReading, keptReading, type Reading } from "./scroll-memory";
import { Announcer } from "./status";
import "./print.css";
import "./transcript.css";
import { useAddressedMessage } from "./use-addressed-message";
import type { ConversationState as Conversation } from "./use-conversation";
import { useScroll } from "./use-scroll";
import { useLongPress } from "./use-long-press";
import { useWheel } from "./use-wheel";

const FindBar = deferred(() => import("./find-bar").then((m) => m.FindBar), {
  onFailure: ({ onClose }) => onClose(),
});

export function Transcript({ id, conversation }: { id: string; conversation: Conversation }) {
  const { t } = useLocalization();
  const { rows, page, turnID } = conversation;
  const locator = useRef<RowLocator | null>(null);
  const older = useRef(conversation.loadOlder);
  older.current = conversation.loadOlder;
  const scroll = useScroll(
    () => older.current(),
    (key, by) => locator.current?.locate(key, by) ?? null,
    useKeptReading(id, rows),
  );
  useKeepReading(id, scroll.read);
  const { following, hold } = scroll;
  useWheel(scroll.scroller);
  useLongPress(scroll.content);
  const seen = useLastSeenRow(rows, following);
  const [edit, editHandled] = useEditRequest(rows, scroll.toEnd);
  useScrollToSent(rows, scroll.toQuestion);
  const [finding, closeFind] = useFind(rows.length > maxUnvirtualized || conversation.hasOlder);
  useAddressedMessage(id, conversation, scroll, locator);
  useMarkAsRead(id, rows, following, page?.unread === true);
  useNoteShown();
  const busy = turnID !== null || page?.live_turn_id != null;
  const context = useMemo(() => ({ id, busy, scroll: { hold }, editHandled }), [id, busy, hold, editHandled]);
  return (
    <ConversationContext value={context}>
      <div className="relative flex min-h-0 grow flex-col short:h-48 short:shrink-0">
        <div
          ref={scroll.scroller}
          data-scroll=""
          className="fades-out min-h-0 grow overflow-y-auto overscroll-contain [overflow-anchor:none] md:[scrollbar-gutter:stable_both-edges]"
        >
          <div ref={scroll.content} className="mx-auto w-full max-w-(--width-prose) px-4 pt-2 pb-6">
            <div role="log" aria-live="off" aria-label={t("transcript.name")}>
              {conversation.hasOlder && (
                <p className="h-10 animate-delayed text-center text-sm text-faint">{t("transcript.older")}</p>
              )}
              <List rows={rows} scroll={scroll} locator={locator} edit={edit} />
            </div>
            <Tasks
              conversation={id}
              lastMessageAt={rows.findLast(({ message }) => message !== null)?.message?.created_at ?? null}
            />
          </div>
          <div ref={scroll.spacer} aria-hidden="true" />
        </div>
        {finding && (
          <FindBar
            conversation={id}
            branch={page?.active_branch_id}
            rows={rows}
            scroll={scroll}
            locator={locator}
            hasOlder={conversation.hasOlder}
            onOlder={conversation.loadOlder}
            onClose={closeFind}
          />
        )}
        {!following && <JumpToEnd count={countRowsAfter(rows, seen)} live={turnID !== null} onJump={scroll.toEnd} />}
      </div>
      <Announcer turnID={turnID} rows={rows} />
    </ConversationContext>
  );
}

function JumpToEnd({ count, live, onJump }: { count: number; live: boolean; onJump: () => void }) {
  const { t } = useLocalization();
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center">
      <button
        type="button"
        onClick={onJump}
        className="pointer-events-auto inline-flex min-h-9 items-center gap-2 rounded-full border border-line bg-raised ps-3 pe-4 text-sm text-soft shadow-float hover:text-ink pointer-coarse:min-h-11"
      >
        <span className={live ? "text-accent" : ""}>
          <Icon name="arrowDown" size={16} />
        </span>
        {count > 0 ? t("transcript.jump_new", { count }) : t("transcript.jump")}
      </button>
    </div>
  );
}

/** The history entry of a conversation; undefined: the page shows another one, or is about to. */
const useEntry = (id: string) =>
  useLocation({ select: ({ pathname, state }) => (pathname === `/c/${id}` ? state.__TSR_key : undefined) });

/** Returns where the reader was when the history was last at this entry; null: at the end, or that is not loaded. */
function useKeptReading(id: string, rows: readonly Row[]): Reading | null {
  const entry = useEntry(id);
  const [reading] = useState(() => {
    const kept = keptReading(entry);
    return rows.some(({ key }) => key === kept?.key) ? kept : null;
  });
  return reading;
}

/** Keeps where the reader is when the history leaves an entry of the conversation, and when the page is left. */
function useKeepReading(id: string, read: () => Reading | null): void {
  const entry = useEntry(id);
  useLayoutEffect(() => {
    if (entry === undefined) return;
    const keep = () => keepReading(entry, read());
    window.addEventListener("pagehide", keep);
    return () => {
      window.removeEventListener("pagehide", keep);
      keep();
    };
  }, [entry, read]);
}

/** Returns the key of the row that was the last one when the view last followed the end; null: none. */
function useLastSeenRow(rows: readonly Row[], following: boolean): string | null {
  const [seen, setSeen] = useState<string | null>(null);
  const last = rows.at(-1)?.key ?? null;
  useEffect(() => {
    if (following) setSeen(last);
  }, [following, last]);
  return seen;
}

/** Scrolls a message that this tab has just sent to the top of the view. Messages from other tabs do not scroll it. */
function useScrollToSent(rows: readonly Row[], toQuestion: () => void): void {
  const sent =
    rows.findLast(({ outgoing }) => outgoing?.state === "sending" && sentFromThisTab(outgoing.key))?.key ?? null;
  useEffect(() => {
    if (sent !== null) toQuestion();
  }, [sent, toQuestion]);
}

/** Marks the conversation as read up to its last message once the end is visible. */
function useMarkAsRead(id: string, rows: readonly Row[], following: boolean, unread: boolean): void {
  const last = rows.at(-1)?.message ?? null;
  const newest = unread && following && isFinal(last) ? last.message_id : null;
  useEffect(() => {
    if (newest === null) return;
    const seen = () => document.removeEventListener("visibilitychange", mark);
    let marking = false;
    const mark = () => {
      if (marking || document.visibilityState !== "visible") return;
      marking = true;
      // After a failure it stays unread and is marked when the page becomes visible again.
      markRead(id, newest).then(seen, () => void (marking = false));
    };
    document.addEventListener("visibilitychange", mark);
    mark();
    return seen;
  }, [id, newest]);
}

/**
 * Returns the key of the last user message when the user requests to edit it, until the request is handled; and the
 * function that marks it as handled.
 */
function useEditRequest(rows: readonly Row[], toEnd: () => void): [key: string | null, handled: () => void] {
  const count = useComposerRequests(({ editLast }) => editLast);
  const known = useRef(count);
  const [key, setKey] = useState<string | null>(null);
  useEffect(() => {
    if (count === known.current) return;
    known.current = count;
    const last = rows.findLast((row) => row.kind === "question" && row.message !== null)?.key ?? null;
    setKey(last);
    // A virtualised list renders the row only near the end.
    if (last !== null && document.querySelector(`[data-row="${CSS.escape(last)}"]`) === null) toEnd();
  }, [count, rows, toEnd]);
  return [key, useCallback(() => setKey(null), [])];
}

/**
 * Opens the find bar with Ctrl+F or ⌘F. While it is open, the keys open the browser's own find. Returns whether it is
 * open, and the function that closes it and returns the focus.
 */
function useFind(enabled: boolean): [open: boolean, close: () => void] {
  const [open, setOpen] = useState(false);
  const focused = useRef<Element | null>(null);
  useEffect(() => {
    if (!enabled || open) return;
    const pressed = (event: KeyboardEvent) => {
      const mod = onMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
      if (!mod || event.shiftKey || event.altKey || keyOf(event) !== "F") return;
      if (event.defaultPrevented || document.querySelector('[role="dialog"], [role="menu"]') !== null) return;
      event.preventDefault();
      focused.current = document.activeElement;
      setOpen(true);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [enabled, open]);
  const close = useCallback(() => {
    setOpen(false);
    if (focused.current instanceof HTMLElement && focused.current.isConnected) focused.current.focus();
  }, []);
  return [open, close];
}
