// Finds the matches of a query in the displayed rows, and highlights them without changing the document.
import { fold, positionsOf, type Match } from "../../parts/find";

/** The text of a row that is searched: the user message or the answer, without controls, labels and details. */
const searched = '[data-kind="question"] p, .prose, .code-lines';
const skipped = 'button, figcaption, .sr-only, [hidden]:not([hidden="until-found"]), [data-details]';

/** Returns the ranges of a folded query in a row. A formula is searched as it is written, and marked as a whole. */
function rangesIn(row: Element, query: string): Range[] {
  const nodes: { node: Text; start: number }[] = [];
  let text = "";
  let block: Element | null = null;
  const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  while (walker.nextNode() !== null) {
    const node = walker.currentNode;
    if (node instanceof Element) {
      if (node.tagName === "BR") text += "\n";
      continue;
    }
    const parent = node.parentElement!;
    if (parent.closest(searched) === null || parent.closest(skipped) !== null) continue;
    const around = parent.closest("p, li, td, th, h3, h4, h5, h6, pre, summary, .katex");
    if (around?.matches(".katex") === true && parent.closest("annotation") === null) continue;
    if (block !== null && around !== block) text += "\n"; // no match crosses the end of a block
    block = around;
    nodes.push({ node: node as Text, start: text.length });
    // The lines of a paragraph are displayed as one.
    const { data } = node as Text;
    text += parent.closest('pre, [data-kind="question"]') === null ? data.replaceAll("\n", " ") : data;
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
    const formula = range.startContainer.parentElement!.closest(".katex")?.querySelector(".katex-html");
    if (formula != null) range.selectNodeContents(formula);
    return range;
  });
}

/** The matches of a folded query in the displayed rows. Each row is searched once, and again when it has changed. */
export class Marks {
  readonly #found = new Map<Element, readonly Range[]>();
  readonly #all = typeof Highlight === "undefined" ? new Set<Range>() : new Highlight();

  constructor(
    private readonly content: Element,
    private readonly query: string,
  ) {
    if (this.#all instanceof Set) return;
    CSS.highlights.set("find", this.#all);
    CSS.highlights.delete("find-current");
  }

  /** Searches the rows that are new or have changed. */
  update(changes: readonly MutationRecord[]): void {
    const changed = new Set(
      changes.map(({ target }) => (target instanceof Element ? target : target.parentElement)?.closest("[data-row]")),
    );
    for (const [row, ranges] of this.#found) {
      if (row.isConnected && !changed.has(row)) continue;
      for (const range of ranges) this.#all.delete(range);
      this.#found.delete(row);
    }
    for (const row of this.content.querySelectorAll("[data-row]")) {
      if (this.#found.has(row)) continue;
      const ranges = rangesIn(row, this.query);
      for (const range of ranges) this.#all.add(range);
      this.#found.set(row, ranges);
    }
  }

  /** Highlights the current match. Returns its range; null: it is not displayed. */
  select({ key, nth }: Match): Range | null {
    const row = this.content.querySelector(`[data-row="${CSS.escape(key)}"]`);
    const range = (row === null ? undefined : this.#found.get(row)?.[nth]) ?? null;
    if (!(this.#all instanceof Set)) {
      const selected = new Highlight(...(range === null ? [] : [range]));
      selected.priority = 1;
      CSS.highlights.set("find-current", selected);
    }
    return range;
  }
}

/** Opens what is folded around a match, as the browser's own find does. */
export function unfold(range: Range): void {
  const inside = range.startContainer.parentElement!;
  inside.closest('[hidden="until-found"]')?.dispatchEvent(new Event("beforematch", { bubbles: true }));
  for (let at: Element | null = inside; at !== null; at = at.parentElement)
    if (at instanceof HTMLDetailsElement) at.open = true;
}

export function removeHighlights(): void {
  if (typeof Highlight === "undefined") return;
  CSS.highlights.delete("find");
  CSS.highlights.delete("find-current");
}
