// The citations in a text: of an answer, the markers that the service lists; of a report, numbers in brackets. Each is a number
// that opens what its source says.
import { createContext, Fragment, use, type ComponentType } from "react";
import { deferred } from "../controls/deferred";
import type { Citation } from "../generated/events";
import { CitationNumber } from "./citation-number";

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
    if (at % 2 === 0) return <Fragment key={at}>{piece}</Fragment>;
    if (report !== null && !piece.includes(":")) {
      const { Citation, ...rest } = report;
      return <Citation key={at} number={Number(piece.slice(1, -1))} {...rest} />;
    }
    const citation = citations.find(({ marker }) => marker === piece);
    return citation === undefined ? piece : <AnswerCitation key={at} citation={citation} />;
  });
}
