// Divides the text of a file at its pages and around the cited part. Offsets are bytes of UTF-8.
import type { Schemas } from "../../api/client";

type TextRange = Pick<Schemas["TextRange"], "offset" | "text" | "blocks">;

export interface Piece {
  /** The page, sheet, slide or chapter that starts here, or in whose middle the text starts; null: none. */
  heading: Schemas["TextBlock"] | null;
  text: string;
  cited: boolean;
}

/** Returns the pieces of consecutive ranges, in their order. */
export function piecesOf(ranges: readonly TextRange[], cited?: { offset: number; length: number }): Piece[] {
  const first = ranges[0];
  if (first === undefined) return [];
  const bytes = new TextEncoder().encode(ranges.map(({ text }) => text).join(""));
  const from = first.offset;
  const to = from + bytes.length;
  const blocks = [...new Map(ranges.flatMap((range) => range.blocks).map((block) => [block.offset, block])).values()];
  const cuts = new Set([from, ...blocks.map((block) => Math.max(block.offset, from))]);
  if (cited !== undefined) cuts.add(cited.offset).add(cited.offset + cited.length);
  const starts = [...cuts].filter((at) => at >= from && at < to).sort((a, b) => a - b);
  const decoder = new TextDecoder();
  return starts.map((start, at) => ({
    heading: blocks.find((block) => Math.max(block.offset, from) === start) ?? null,
    text: decoder.decode(bytes.subarray(start - from, (starts[at + 1] ?? to) - from)).trimEnd(),
    cited: cited !== undefined && start >= cited.offset && start < cited.offset + cited.length,
  }));
}
