// Speaks to who listens: that an answer is being written, and what it says first, or sentence by sentence, as the reader
// chose. The transcript itself is silent, so that nothing is read twice.
import { useEffect, useRef, useState } from "react";
import { useDevice } from "../controls/device";
import { firstParagraph, plainOf } from "../parts/plain";
import { announce, useVoice } from "../parts/voice";
import type { TurnView } from "../turn/fold";
import { useLive } from "../turn/live";
import { useSpeech } from "../words/speech";

/** Milliseconds between two announcements of sentences. */
const breath = 1_500;

export function Status({ turnID }: { turnID: string | null }) {
  const { text, count } = useVoice();
  const [said, setSaid] = useState({ text: "", count: 0 });
  // What was said before this room was entered is not said again.
  const before = useRef(count);
  useEffect(() => {
    if (count > before.current) setSaid({ text, count });
  }, [text, count]);
  useAnswerSpoken(turnID);
  return (
    <div role="status" aria-live="polite" className="sr-only">
      {/* The same words twice are two announcements. */}
      <span key={said.count}>{said.text}</span>
    </div>
  );
}

function useAnswerSpoken(turnID: string | null): void {
  const { say } = useSpeech();
  const mode = useDevice((device) => device.announce);
  const live = useLive(({ turns }) => turnID !== null && turns[turnID] !== undefined);
  const ended = useLive(({ turns }) => turnID !== null && turns[turnID]?.view.finished != null);
  const spoken = useRef(0);
  useEffect(() => {
    if (!live || mode === "off") return;
    spoken.current = 0;
    announce(say("transcript.answering"));
  }, [turnID, live, mode, say]);
  useEffect(() => {
    if (mode !== "sentences" || !live || ended || turnID === null) return;
    const timer = setInterval(() => {
      const text = answerText(useLive.getState().turns[turnID]?.view);
      const end = lastSentenceEnd(text, spoken.current);
      if (end <= spoken.current) return;
      announce(plainOf(text.slice(spoken.current, end)));
      spoken.current = end;
    }, breath);
    return () => clearInterval(timer);
  }, [turnID, live, ended, mode]);
  useEffect(() => {
    if (!ended || mode === "off" || turnID === null) return;
    const text = answerText(useLive.getState().turns[turnID]?.view);
    const rest = mode === "sentences" ? plainOf(text.slice(spoken.current)) : firstParagraph(text).slice(0, 500);
    announce(`${say("transcript.answered")} ${rest}`);
  }, [turnID, ended, mode, say]);
}

function answerText(view: TurnView | undefined): string {
  return view?.parts.filter((part) => part.type === "text").map((part) => part.text ?? "").join("\n\n") ?? "";
}

/** Where the last whole sentence behind a place ends; the place itself when there is none. */
export function lastSentenceEnd(text: string, from: number): number {
  let end = from;
  for (const { index, 0: mark } of text.slice(from).matchAll(/[.!?…؟]["'”»)\]]*(?=\s)|[。！？]|\n\n/g)) end = from + index + mark.length;
  return end;
}
