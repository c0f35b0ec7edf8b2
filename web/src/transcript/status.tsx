// Speaks to who listens: that an answer is being written, and what it says first, or sentence by sentence, as the reader
// chose; and what went wrong, always and at once. The transcript itself is silent, so that nothing is read twice.
import { useEffect, useRef, useState } from "react";
import { queryClient } from "../api/queries";
import { useDevice } from "../controls/device";
import type { Part } from "../generated/events";
import { firstParagraph, plainOf } from "../parts/plain";
import { announce, useVoice } from "../parts/voice";
import { useLive } from "../turn/live";
import { useSpeech } from "../words/speech";
import { endOf, endOfMessage, isCalm, told, type End } from "./end";
import { turnQuery } from "./ending";
import type { Row } from "./rows";

/** Milliseconds between two announcements of sentences. */
const breath = 1_500;

export function Status({ turnID, rows }: { turnID: string | null; rows: readonly Row[] }) {
  const { text, count, urgent } = useVoice();
  const [said, setSaid] = useState({ text: "", count: 0, urgent: false });
  // What was said before this room was entered is not said again.
  const before = useRef(count);
  useEffect(() => {
    if (count > before.current) setSaid({ text, count, urgent });
  }, [text, count, urgent]);
  useAnswerSpoken(turnID, rows);
  // The same words twice are two announcements.
  const words = <span key={said.count}>{said.text}</span>;
  return (
    <>
      <div role="status" aria-live="polite" className="sr-only">
        {!said.urgent && words}
      </div>
      <div role="alert" className="sr-only">
        {said.urgent && words}
      </div>
    </>
  );
}

function useAnswerSpoken(turnID: string | null, rows: readonly Row[]): void {
  const { say } = useSpeech();
  const mode = useDevice((device) => device.announce);
  const live = useLive(({ turns }) => turnID !== null && turns[turnID] !== undefined);
  const ended = useLive(({ turns }) => turnID !== null && turns[turnID]?.view.finished != null);
  /** The turn whose end is still to be told, and how much of its text was. */
  const open = useRef<string | null>(null);
  const spoken = useRef(0);
  useEffect(() => {
    if (turnID === null) return;
    open.current = turnID;
    spoken.current = 0;
  }, [turnID]);
  useEffect(() => {
    if (live && mode !== "off") announce(say("transcript.answering"));
  }, [turnID, live, mode, say]);
  useEffect(() => {
    if (mode !== "sentences" || !live || ended || turnID === null) return;
    const timer = setInterval(() => {
      const text = answerText(useLive.getState().turns[turnID]?.view.parts);
      const end = lastSentenceEnd(text, spoken.current);
      if (end <= spoken.current) return;
      announce(plainOf(text.slice(spoken.current, end)));
      spoken.current = end;
    }, breath);
    return () => clearInterval(timer);
  }, [turnID, live, ended, mode]);
  useEffect(() => {
    const turn = open.current;
    if (turn === null) return;
    // A turn may be over before any of its events was heard: then its message tells.
    const finished = useLive.getState().turns[turn]?.view.finished ?? null;
    const message = rows.findLast((row) => row.turnID === turn && row.kind === "answer")?.message ?? null;
    const end = finished !== null ? endOf(finished) : message !== null ? endOfMessage(message) : null;
    if (end === null) return;
    open.current = null;
    const text = answerText(finished !== null ? useLive.getState().turns[turn]!.view.parts : message!.parts);
    const tell = (end: End) => {
      const { word, urgent } = told(end);
      if (mode === "off" && !urgent) return;
      // Who stops an answer has heard enough of it.
      const heard = mode === "off" || end.status === "cancelled" ? "" : text;
      const rest = mode === "sentences" ? plainOf(heard.slice(spoken.current)) : firstParagraph(heard).slice(0, 500);
      announce(`${say(word)} ${rest}`.trim(), urgent);
    };
    if (finished !== null || isCalm(end)) return tell(end);
    void queryClient.fetchQuery(turnQuery(turn)).then(
      ({ stop_reason, error }) => tell({ ...end, stop: stop_reason, error }),
      () => tell(end),
    );
  }, [turnID, ended, rows, mode, say]);
}

function answerText(parts: readonly Part[] | undefined): string {
  return parts?.filter((part) => part.type === "text").map((part) => part.text ?? "").join("\n\n") ?? "";
}

/** Where the last whole sentence behind a place ends; the place itself when there is none. */
export function lastSentenceEnd(text: string, from: number): number {
  let end = from;
  for (const { index, 0: mark } of text.slice(from).matchAll(/[.!?…؟]["'”»)\]]*(?=\s)|[。！？]|\n\n/g)) end = from + index + mark.length;
  return end;
}
