// Finds the matches of a query in the displayed rows, and highlights them without changing the document.
import { fold, positionsOf, type Match } from "../../parts/find";

/** The text of a row that is searched: the user message or the answer, without controls, labels and details. */
const searched = '[data-kind="question"] p, .prose, .code-lines';
const skipped = "button, figcaption, .sr-only, [hidden], [data-details]";

/** Returns the ranges of a folded query in a row. */
export function rangesIn(row: Element, query: string): Range[] {
  const nodes: { node: Text; start: number }[] = [];
  let text = "";
  let block: Element | null = null;
  const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() !== null) {
    const node = walker.currentNode as Text;
    const parent = node.parentElement!;
    if (parent.closest(searched) === null || parent.closest(skipped) !== null) continue;
    const around = parent.closest("p, li, td, th, h3, h4, h5, h6, pre, .katex");
    if (block !== null && around !== block) text += "\n"; // no match crosses the end of a block
    block = around;
    nodes.push({ node, start: text.length });
    text += node.data;
  }
  const folded = fold(text);
  let last = 0;
  /** Sets an end of a range to an index of the text. */
  const locate = (index: number, end: boolean): [Text, number] => {
    while (last + 1 < nodes.length && nodes[last + 1]!.start + (end ? 1 : 0) <= index) last += 1;
    const { node, start } = nodes[last]!;
    return [node, Math.min(index - start, node.length)];
  };
  return positionsOf(query, folded.text).map((at) => {
    const range = document.createRange();
    range.setStart(...locate(folded.index[at]!, false));
    range.setEnd(...locate(folded.index[at + query.length]!, true));
    return range;
  });
}

/** Highlights the matches in the displayed rows. Returns the range of the current match; null: it is not displayed. */
export function highlightMatches(content: Element, query: string, current: Match | null): Range | null {
  const ranges: Range[] = [];
  let active: Range | null = null;
  for (const row of content.querySelectorAll<HTMLElement>("[data-row]")) {
    const inRow = rangesIn(row, query);
    if (current !== null && row.dataset["row"] === current.key) active = inRow[current.nth] ?? null;
    ranges.push(...inRow);
  }
  if (typeof Highlight !== "undefined") {
    CSS.highlights.set("find", new Highlight(...ranges));
    CSS.highlights.set("find-current", new Highlight(...(active === null ? [] : [active])));
    CSS.highlights.get("find-current")!.priority = 1;
  }
  return active;
}

export function removeHighlights(): void {
  if (typeof Highlight === "undefined") return;
  CSS.highlights.delete("find");
  CSS.highlights.delete("find-current");
}
