// The citations in a text: of an answer, the markers that the service lists; of a report, numbers in brackets. Each is a number
// that opens what its source says.
import { createContext, Fragment, use, type ComponentType } from "react";
import { deferred } from "../controls/deferred";
import type { Citation } from "../generated/events";

export interface CitationProps {
  number: number;
  conversation: string;
  /** The identifier of the message or of the artifact that is the report. */
  report: string;
}

export interface Report {
  conversation: string;
  report: string;
  /** Shows a citation. */
  Citation: ComponentType<CitationProps>;
}

/** The report that the text belongs to; null: its numbers in brackets are text. */
export const ReportContext = createContext<Report | null>(null);

/** The citations of the answer that the text belongs to. */
export const CitationsContext = createContext<readonly Citation[]>([]);

const bracketed = /(\[[1-9]\d{0,3}(?::\d{1,6})?\])/;

export const hasCitations = (text: string): boolean => bracketed.test(text);

export const citationChip =
  "mx-px rounded-sm bg-accent-wash px-1 align-[0.15em] text-[0.75em] leading-[1.4] font-medium text-accent tabular-nums";

/** The number of a citation until its card is loaded. */
export const CitationNumber = ({ number }: { number: number }) => <span className={citationChip}>{number}</span>;

const AnswerCitation = deferred(() => import("./answer-citation").then((m) => m.AnswerCitation), {
  Placeholder: ({ citation: { index } }) => <CitationNumber number={index} />,
  onFailure: () => {},
});

/** A text with markers of citations. */
export function Cited({ text }: { text: string }) {
  const report = use(ReportContext);
  const citations = use(CitationsContext);
  if (report === null && citations.length === 0) return text;
  return text.split(bracketed).map((piece, at) => {
    const citation = at % 2 === 0 ? undefined : citations.find(({ marker }) => marker === piece);
    if (citation !== undefined) return <AnswerCitation key={at} citation={citation} />;
    if (at % 2 === 0 || report === null || piece.includes(":")) return <Fragment key={at}>{piece}</Fragment>;
    const { Citation, ...rest } = report;
    return <Citation key={at} number={Number(piece.slice(1, -1))} {...rest} />;
  });
}
