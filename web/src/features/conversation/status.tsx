// Announces to screen readers that an answer has started, and its first paragraph or every sentence, as the user chose;
// and failures, always and at once. The transcript itself is not a live region, so nothing is read twice.
import { useEffect, useRef, useState } from "react";
import { queryClient } from "../../api/queries";
import { useDevice } from "../../controls/device";
import type { Part } from "../../generated/events";
import { firstParagraph, toPlainText } from "../../parts/plain";
import { announce, useAnnouncement } from "../../parts/announcements";
import { useLive } from "../../turn/live";
import { useLocalization } from "../../messages/localization";
import { endOf, endOfMessage, isExpectedEnd, announcementOf, type End } from "./end";
import { turnQuery } from "./ending";
import type { Row } from "./rows";

/** The interval between announcements of sentences, in milliseconds. */
const sentenceInterval = 1_500;

export function Announcer({ turnID, rows }: { turnID: string | null; rows: readonly Row[] }) {
  const { text, count, urgent } = useAnnouncement();
  const [announced, setAnnounced] = useState({ text: "", count: 0, urgent: false });
  // Announcements from before this page was opened are not repeated.
  const before = useRef(count);
  useEffect(() => {
    if (count > before.current) setAnnounced({ text, count, urgent });
  }, [text, count, urgent]);
  useAnswerAnnouncements(turnID, rows);
  // The key makes the same text twice two announcements.
  const content = <span key={announced.count}>{announced.text}</span>;
  return (
    <>
      <div role="status" aria-live="polite" className="sr-only">
        {!announced.urgent && content}
      </div>
      <div role="alert" className="sr-only">
        {announced.urgent && content}
      </div>
    </>
  );
}

function useAnswerAnnouncements(turnID: string | null, rows: readonly Row[]): void {
  const { t } = useLocalization();
  const mode = useDevice((device) => device.announce);
  const live = useLive(({ byID: turns }) => turnID !== null && turns[turnID] !== undefined);
  const ended = useLive(({ byID: turns }) => turnID !== null && turns[turnID]?.view.finished != null);
  /** open: the turn whose end is not announced yet. spoken: the number of announced characters of its text. */
  const open = useRef<string | null>(null);
  const spoken = useRef(0);
  useEffect(() => {
    if (turnID === null) return;
    open.current = turnID;
    spoken.current = 0;
  }, [turnID]);
  useEffect(() => {
    if (live && mode !== "off") announce(t("transcript.answering"));
  }, [turnID, live, mode, t]);
  useEffect(() => {
    if (mode !== "sentences" || !live || ended || turnID === null) return;
    const timer = setInterval(() => {
      const text = answerText(useLive.getState().byID[turnID]?.view.parts);
      const end = lastSentenceEnd(text, spoken.current);
      if (end <= spoken.current) return;
      announce(toPlainText(text.slice(spoken.current, end)));
      spoken.current = end;
    }, sentenceInterval);
    return () => clearInterval(timer);
  }, [turnID, live, ended, mode]);
  useEffect(() => {
    const turn = open.current;
    if (turn === null) return;
    // A turn may end before any of its events has arrived; then its message gives the end.
    const finished = useLive.getState().byID[turn]?.view.finished ?? null;
    const message = rows.findLast((row) => row.turnID === turn && row.kind === "answer")?.message ?? null;
    const end = finished !== null ? endOf(finished) : message !== null ? endOfMessage(message) : null;
    if (end === null) return;
    open.current = null;
    const text = answerText(finished !== null ? useLive.getState().byID[turn]!.view.parts : message!.parts);
    const announceEnd = (end: End) => {
      const { key, urgent } = announcementOf(end);
      if (mode === "off" && !urgent) return;
      // The text of an answer that the user stopped is not announced.
      const markdown = mode === "off" || end.status === "cancelled" ? "" : text;
      const rest =
        mode === "sentences" ? toPlainText(markdown.slice(spoken.current)) : firstParagraph(markdown).slice(0, 500);
      announce(`${t(key)} ${rest}`.trim(), urgent);
    };
    if (finished !== null || isExpectedEnd(end)) return announceEnd(end);
    void queryClient.fetchQuery(turnQuery(turn)).then(
      ({ stop_reason, error }) => announceEnd({ ...end, stop: stop_reason, error }),
      () => announceEnd(end),
    );
  }, [turnID, ended, rows, mode, t]);
}

function answerText(parts: readonly Part[] | undefined): string {
  return (
    parts
      ?.filter((part) => part.type === "text")
      .map((part) => part.text ?? "")
      .join("\n\n") ?? ""
  );
}

/** Returns the end of the last complete sentence after an index; the index itself if there is none. */
export function lastSentenceEnd(text: string, from: number): number {
  let end = from;
  for (const { index, 0: mark } of text.slice(from).matchAll(/[.!?…؟]["'”»)\]]*(?=\s)|[。！？]|\n\n/g))
    end = from + index + mark.length;
  return end;
}
