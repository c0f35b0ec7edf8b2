// The look of the number of a citation.

export const citationChip =
  "mx-px rounded-sm bg-accent-wash px-1 align-[0.15em] text-[0.75em] leading-[1.4] font-medium text-accent tabular-nums";

/** The number of a citation until its card is loaded. */
export const CitationNumber = ({ number }: { number: number }) => <span className={citationChip}>{number}</span>;
