// The citations of a report: numbers in brackets, each of which opens what the source says.
import { createContext, Fragment, use, type ComponentType } from "react";

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

const citation = /(\[[1-9]\d{0,2}\])/;

export const hasCitations = (text: string): boolean => citation.test(text);

/** A text with numbers in brackets. */
export function Cited({ text }: { text: string }) {
  const report = use(ReportContext);
  if (report === null) return text;
  const { Citation, ...rest } = report;
  return text
    .split(citation)
    .map((piece, at) =>
      at % 2 === 0 ? (
        <Fragment key={at}>{piece}</Fragment>
      ) : (
        <Citation key={at} number={Number(piece.slice(1, -1))} {...rest} />
      ),
    );
}
