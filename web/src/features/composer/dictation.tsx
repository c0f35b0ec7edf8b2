// A dictation: listens while it is mounted, and adds what was said to the text of the composer. The service turns recordings into
// text if its operator has configured that, otherwise the browser does.
import { useEffect, useEffectEvent, useRef } from "react";
import { send, type Schemas } from "../../api/client";
import { Refusal, readRefusal } from "../../api/problem";
import { noticeSignOut } from "../../api/session-state";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { writingMessages, type WritingMessageKey } from "../../messages/writing";
import { DictatedText, withSpeech } from "./dictated-text";
import { drafts } from "./page-drafts";
import { transcribes, type DictationState } from "./speech";

interface DictationProps {
  conversation: string;
  state: DictationState;
  onChange: (state: DictationState | null) => void;
}

/** What listens. */
interface Listener {
  /** Ends listening; what was said until now is still turned into text. */
  stop(): void;
  /** Ends listening; nothing more is turned into text. */
  abort(): void;
}

/** What a listener reports. */
interface Reports {
  /** All that was understood since the beginning, in pieces of which the last ones may still change. */
  heard(pieces: readonly string[]): void;
  /** Listening has failed. retry repeats what failed. */
  failed(reason: WritingMessageKey, retry?: () => void): void;
  ended(): void;
}

export function Dictation({ conversation, state, onChange }: DictationProps) {
  const { language } = useLocalization();
  const t = useMessages(writingMessages);
  const listener = useRef<Listener | null>(null);
  const end = useEffectEvent(() => onChange(null));
  const stop = useEffectEvent(() => onChange("stopping"));
  const fail = useEffectEvent((reason: WritingMessageKey, retry?: () => void) =>
    toast(t(reason), {
      kind: "problem",
      ...(retry === undefined ? {} : { action: { label: t("pages.retry"), run: retry } }),
    }),
  );
  useEffect(() => {
    const textOf = () => drafts.state.getState().byID[conversation]?.text ?? "";
    const text = new DictatedText(textOf());
    const reports: Reports = {
      heard: (pieces) => drafts.type(conversation, text.with(textOf(), pieces)),
      failed: (reason, retry) => fail(reason, retry),
      ended: () => end(),
    };
    const add = (speech: string) => drafts.type(conversation, withSpeech(textOf(), speech));
    listener.current = transcribes ? record(language, add, reports) : recognize(languageTag(language), reports);
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation(); // it does not stop an answer too
      stop();
    };
    window.addEventListener("keydown", escape, true);
    return () => {
      window.removeEventListener("keydown", escape, true);
      listener.current?.abort();
    };
  }, [conversation, language]);
  useEffect(() => {
    if (state === "sent" && !transcribes) listener.current?.abort();
    else if (state !== "on") listener.current?.stop();
  }, [state]);
  return null;
}

/** The language of the app as the browser prefers it, for example en-GB. */
const languageTag = (language: string): string =>
  navigator.languages.find((tag) => tag.toLowerCase().split("-")[0] === language) ?? language;

/** What the browsers have of the Web Speech API, which TypeScript does not declare. */
interface Recognition {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: { results: ArrayLike<ArrayLike<{ transcript: string }>> }) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  stop(): void;
  abort(): void;
}

const recognitionFailures: Readonly<Record<string, WritingMessageKey>> = {
  "not-allowed": "writing.dictation.denied",
  "service-not-allowed": "writing.dictation.denied",
  "audio-capture": "writing.dictation.no_microphone",
  "no-speech": "writing.dictation.nothing",
  network: "writing.dictation.failed",
  "language-not-supported": "writing.dictation.failed",
};

/** Listens with the speech recognition of the browser. */
function recognize(language: string, { heard, failed, ended }: Reports): Listener {
  const browser = window as unknown as Partial<Record<string, new () => Recognition>>;
  const recognition = new (browser["SpeechRecognition"] ?? browser["webkitSpeechRecognition"])!();
  recognition.lang = language;
  recognition.continuous = true;
  recognition.interimResults = true;
  let over = false;
  recognition.onresult = ({ results }) => over || heard(Array.from(results, (one) => one[0]?.transcript ?? ""));
  recognition.onerror = ({ error }) => {
    const reason = recognitionFailures[error];
    if (!over && reason !== undefined) failed(reason);
  };
  recognition.onend = () => {
    if (!over) ended();
    over = true;
  };
  recognition.start();
  return {
    stop: () => recognition.stop(),
    abort: () => {
      if (over) return;
      over = true;
      recognition.abort();
      ended();
    },
  };
}

/** The formats of recordings, the best one first. Every browser has one of them. */
const formats = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];
const bitsPerSecond = 32_000;
/** The recording ends before the service refuses its size. */
const maxRecording = 24 * 2 ** 20;

/** Records, and lets the service turn the recording into text. */
function record(language: string, add: (speech: string) => void, { failed, ended }: Reports): Listener {
  let recorder: MediaRecorder | null = null;
  let over = false;
  let stopped = false;
  const end = () => {
    if (over) return;
    over = true;
    ended();
  };
  /** It was stopped before anything was recorded. */
  const nothing = () => {
    if (!over) failed("writing.dictation.nothing");
    end();
  };
  const transcribe = async (recording: Blob) => {
    try {
      const text = await transcribed(recording, language);
      if (text === "") failed("writing.dictation.nothing");
      else add(text);
    } catch (refusal) {
      noticeSignOut(refusal);
      const tooLong = refusal instanceof Refusal && refusal.status === 413;
      if (tooLong) failed("writing.dictation.too_long");
      else failed("writing.dictation.failed", () => void transcribe(recording));
    } finally {
      end();
    }
  };
  const start = async () => {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const release = () => stream.getTracks().forEach((track) => track.stop());
    if (over || stopped) {
      release();
      return nothing();
    }
    const mimeType = formats.find((format) => MediaRecorder.isTypeSupported(format)) ?? "";
    const pieces: Blob[] = [];
    let size = 0;
    recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: bitsPerSecond });
    const { mimeType: type } = recorder;
    recorder.ondataavailable = ({ data }) => {
      pieces.push(data);
      size += data.size;
      if (size > maxRecording) recorder?.stop();
    };
    recorder.onstop = () => {
      release();
      if (over) return;
      if (size === 0) nothing();
      else void transcribe(new Blob(pieces, { type: type || "audio/webm" }));
    };
    recorder.start(1_000);
  };
  start().catch((error: unknown) => {
    if (over) return;
    const denied = error instanceof DOMException && error.name === "NotAllowedError";
    failed(denied ? "writing.dictation.denied" : "writing.dictation.no_microphone");
    end();
  });
  const stop = () => {
    stopped = true;
    if (recorder !== null && recorder.state !== "inactive") recorder.stop();
  };
  return {
    stop,
    abort: () => {
      over = true;
      stop();
    },
  };
}

/** Returns the text of a recording. Throws a Refusal if the service does not return it. */
async function transcribed(recording: Blob, language: string): Promise<string> {
  const request = new Request(`/transcriptions?language=${language}`, {
    method: "POST",
    body: recording,
    headers: { "Content-Type": recording.type },
  });
  const response = await send(request);
  if (!response.ok) throw await readRefusal(response);
  return ((await response.json()) as Schemas["Transcription"]).text;
}
