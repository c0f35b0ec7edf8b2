// A block of code: its language, copy, save, wrap, numbered lines. Plain while it is written, coloured when it stands
// and is near to what is looked at.
import { memo, useEffect, useRef, useState, type RefObject } from "react";
import { Button, IconButton } from "../controls/button";
import { useSpeech } from "../words/speech";
import "./code.css";
import { CopyButton } from "./copy-button";
import { lineCount, previewOf } from "./cut";
import { saveText } from "./keep";
import { fileName, languageName, languageOf } from "./languages";
import { useNear } from "./near";
import { paint, paintedAlready } from "./paint";
import type { Painted } from "./paint-kinds";

/** Code with more lines than this is folded to its first ones. */
const foldedAbove = 40;
const foldedTo = 24;

export interface CodeProps {
  code: string;
  language: string;
  filename?: string | undefined;
  /** More of it is to come. */
  open: boolean;
}

export const Code = memo(function Code({ code, language, filename, open }: CodeProps) {
  const { say } = useSpeech();
  const shown = code.endsWith("\n") ? code.slice(0, -1) : code; // the end of the last line is no line
  const count = lineCount(shown);
  // What was written before the reader's eyes is not folded under them.
  const [folded, setFolded] = useState(!open && count > foldedAbove);
  const [wrapped, setWrapped] = useState(false);
  const figure = useRef<HTMLElement>(null);
  const text = useRef<HTMLPreElement>(null);
  const painted = usePainted(figure, code, language, open);
  const { lines, cut } = previewOf(shown, folded ? foldedTo : undefined);
  const name = filename ?? languageName(language);
  const partly = folded || cut;
  const unfold = () => {
    setFolded(false);
    text.current?.focus({ preventScroll: true }); // the button goes
  };
  return (
    <figure ref={figure} className="my-4 overflow-clip rounded-md bg-sunken">
      <figcaption className="flex min-h-10 items-center justify-between gap-2 ps-4 pe-1.5 text-xs text-faint">
        <bdi className="truncate">{name === "" ? say("transcript.code") : name}</bdi>
        <span className="flex">
          <IconButton size="small" icon="wrap" label={say("transcript.code.wrap")} aria-pressed={wrapped} className={wrapped ? "bg-hover" : ""} onClick={() => setWrapped(!wrapped)} />
          <IconButton size="small" icon="download" label={say("transcript.code.save")} onClick={() => saveText(filename ?? fileName(language), code)} />
          <CopyButton label={say("transcript.code.copy")} text={() => code} marks={{ "data-copy": "" }} />
        </span>
      </figcaption>
      <pre ref={text} tabIndex={0} role="group" aria-label={say("transcript.code.of", { name: name === "" ? say("transcript.code") : name })} dir="ltr" className="overflow-x-auto px-4 pt-1 pb-4 font-mono text-sm">
        {/* What is cut or folded can still be copied whole, by whatever looks for code in the page. */}
        {partly && (
          <code data-code="" hidden>
            {code}
          </code>
        )}
        <code {...(partly ? {} : { "data-code": "" })} className={`code-lines ${count > 1 ? "numbered" : ""} ${wrapped ? "wrap-anywhere whitespace-pre-wrap" : "whitespace-pre"}`}>
          {lines.map((line, at) => (
            <Line key={at} text={line} runs={painted?.[at]} last={at === lines.length - 1} />
          ))}
        </code>
      </pre>
      {partly && (
        <div className="flex flex-wrap items-center gap-x-3 px-2 pb-2 text-xs text-faint">
          {folded ? (
            <Button look="quiet" icon="chevronDown" onClick={unfold}>
              {say("transcript.code.all", { count })}
            </Button>
          ) : (
            <span className="px-2">{say("transcript.code.cut")}</span>
          )}
        </div>
      )}
    </figure>
  );
});

const Line = memo(function Line({ text, runs, last }: { text: string; runs: Painted[number] | undefined; last: boolean }) {
  return (
    <span>
      {runs === undefined || text.endsWith("…")
        ? text
        : runs.map(([ink, piece], at) =>
            ink === "plain" ? (
              piece
            ) : (
              <span key={at} data-ink={ink}>
                {piece}
              </span>
            ),
          )}
      {last ? "" : "\n"}
    </span>
  );
});

/** The colours of code that stands, once it is near to what is looked at; undefined until then. */
function usePainted(figure: RefObject<HTMLElement | null>, code: string, word: string, open: boolean): Painted | undefined {
  const language = open ? null : languageOf(word);
  const near = useNear(figure, true);
  const [found, setFound] = useState<{ code: string; lines: Painted } | null>(null);
  const ready = language === null ? undefined : paintedAlready(code, language);
  useEffect(() => {
    if (language === null || !near || ready !== undefined) return;
    let current = true;
    void paint(code, language).then((lines) => current && lines !== null && setFound({ code, lines }));
    return () => void (current = false);
  }, [code, language, near, ready]);
  return ready ?? (found?.code === code && language !== null ? found.lines : undefined);
}
