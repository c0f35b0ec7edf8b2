// A code block: its language, numbered lines, and buttons to copy, save and wrap it, which stay visible while long code scrolls. It has syntax highlighting
// near the visible area, also while it streams.
import { memo, useEffect, useRef, useState, type RefObject } from "react";
import { Button, IconButton } from "../controls/button";
import { useLocalization } from "../messages/localization";
import "./code.css";
import { CopyButton } from "./copy-button";
import { Folded } from "./folded";
import { lineCount, previewOf } from "./preview";
import { copyText, saveText } from "./export-text";
import { fileName, languageName, languageOf } from "./languages";
import { useNear } from "./near";
import { usePrinting } from "./printing";
import { highlighter } from "./highlight";
import type { HighlightedLines } from "./highlight-messages";

/** Code with more lines than foldedAbove is folded to its first foldedTo lines. */
const foldedAbove = 40;
const foldedTo = 24;

export interface CodeProps {
  code: string;
  language: string;
  filename?: string | undefined;
  /** The code is still streaming. */
  streaming: boolean;
  /** Whether long code is folded at first. */
  folds?: boolean;
}

export const Code = memo(function Code({ code, language, filename, streaming: open, folds = true }: CodeProps) {
  const { t } = useLocalization();
  const shown = code.endsWith("\n") ? code.slice(0, -1) : code; // a newline at the end does not start another line
  const count = lineCount(shown);
  // Code that streamed while the reader watched is not folded when it is complete.
  const [isFolded, setFolded] = useState(folds && !open && count > foldedAbove);
  const printing = usePrinting();
  const folded = isFolded && !printing;
  const [wrapped, setWrapped] = useState(false);
  const figure = useRef<HTMLElement>(null);
  const text = useRef<HTMLPreElement>(null);
  const highlighted = useHighlightedLines(figure, code, language, open);
  const { lines, cut } = previewOf(shown);
  const name = filename ?? languageName(language);
  const unfold = () => {
    setFolded(false);
    text.current?.focus({ preventScroll: true }); // the pressed button is removed
  };
  return (
    <figure ref={figure} className="my-4 rounded-md bg-sunken">
      <figcaption className="sticky top-0 z-10 flex min-h-10 select-none items-center rounded-t-md bg-sunken justify-between gap-2 ps-4 pe-1.5 text-xs text-faint">
        <bdi className="truncate">{name === "" ? t("transcript.code") : name}</bdi>
        <span className="flex">
          <IconButton
            size="small"
            icon="wrap"
            label={t("transcript.code.wrap")}
            aria-pressed={wrapped}
            className={wrapped ? "bg-hover" : ""}
            onClick={() => setWrapped(!wrapped)}
          />
          <IconButton
            size="small"
            icon="download"
            label={t("transcript.code.save")}
            onClick={() => saveText(filename ?? fileName(language), code)}
          />
          <CopyButton
            label={t("transcript.code.copy")}
            shown={t("transcript.copy")}
            copy={() => copyText(code)}
            attributes={{ "data-copy": "" }}
          />
        </span>
      </figcaption>
      <pre
        ref={text}
        tabIndex={0}
        role="group"
        aria-label={t("transcript.code.of", { name: name === "" ? t("transcript.code") : name })}
        dir="ltr"
        className="overflow-x-auto px-4 pt-1 pb-4 font-mono text-sm"
      >
        {/* The whole code for the copy shortcut, which looks for data-code, if only a part of it is displayed. */}
        {cut && (
          <code data-code="" hidden>
            {code}
          </code>
        )}
        <code
          {...(cut ? {} : { "data-code": "" })}
          data-live={open ? "" : undefined}
          className={`code-lines ${count > 1 ? "numbered" : ""} ${wrapped ? "wrap-anywhere whitespace-pre-wrap" : "whitespace-pre"}`}
        >
          {(folded ? lines.slice(0, foldedTo) : lines).map((line, at) => (
            <Line key={at} text={line} runs={highlighted?.[at]} last={at === lines.length - 1} />
          ))}
          {folded && <Folded onFound={() => setFolded(false)}>{lines.slice(foldedTo).join("\n")}</Folded>}
        </code>
      </pre>
      {(folded || cut) && (
        <div className="flex flex-wrap items-center gap-x-3 px-2 pb-2 text-xs text-faint">
          {folded ? (
            <Button look="quiet" icon="chevronDown" onClick={unfold}>
              {t("transcript.code.all", { count })}
            </Button>
          ) : (
            <span className="px-2">{t("transcript.code.cut")}</span>
          )}
        </div>
      )}
    </figure>
  );
});

const Line = memo(function Line({
  text,
  runs,
  last,
}: {
  text: string;
  runs: HighlightedLines[number] | undefined;
  last: boolean;
}) {
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

/** Streaming code that is longer, in characters, is highlighted further only when it is complete: each time, all of it is. */
const maxStreamingLength = 20_000;

interface Highlighted {
  code: string;
  lines: HighlightedLines;
}

/**
 * Returns the highlighted lines of code near the visible area; undefined: none yet. Of code that is still streaming, they
 * are its first lines.
 */
function useHighlightedLines(
  figure: RefObject<HTMLElement | null>,
  code: string,
  word: string,
  open: boolean,
): HighlightedLines | undefined {
  const language = languageOf(word);
  const near = useNear(figure, true);
  const [found, setFound] = useState<Highlighted | null>(null);
  const running = useRef(false); // one job at a time: the next one has all lines that have arrived meanwhile
  const whole = open ? code.slice(0, Math.max(0, code.lastIndexOf("\n"))) : code;
  const ready = language === null || open ? undefined : highlighter.cached(code, language);
  const due =
    language !== null &&
    near &&
    ready === undefined &&
    whole !== "" &&
    whole !== found?.code &&
    !(open && whole.length > maxStreamingLength);
  useEffect(() => {
    if (!due || (open && running.current)) return;
    let current = true;
    running.current = true;
    void highlighter.highlight(whole, language, !open).then((lines) => {
      running.current = false;
      if (current || open) setFound({ code: whole, lines: lines ?? [] });
    });
    return () => void (current = false);
  }, [due, whole, language, open, found]);
  return ready ?? (found !== null && language !== null && code.startsWith(found.code) ? found.lines : undefined);
}
