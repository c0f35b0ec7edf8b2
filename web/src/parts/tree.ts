// What is done to the tree that Markdown makes, before it is drawn. Pure.
import type { ExtraProps } from "react-markdown";
import { putFormulas, withoutPlaces, type Formula } from "./math";

export type Element = NonNullable<ExtraProps["node"]>;
type Node = Element["children"][number];

/** Parsing that Markdown is to leave out: raw HTML is text. */
export function wordsOnly(this: { data(): object }): void {
  const data = this.data() as { micromarkExtensions?: object[] };
  (data.micromarkExtensions ??= []).push({
    disable: { null: ["htmlFlow", "htmlText"] },
  });
}

/** Puts formulas back: as `span`s with data-tex, in code and in addresses as they were written. */
export function withFormulas(formulas: readonly Formula[]): (root: { children: unknown[] }) => void {
  return (root) => {
    if (formulas.length > 0) root.children = (root.children as Node[]).flatMap((child) => put(child, formulas, false));
  };
}

function put(node: Node, formulas: readonly Formula[], literal: boolean): Node[] {
  if (node.type === "text") {
    if (literal) return [{ ...node, value: withoutPlaces(node.value, formulas) }];
    return putFormulas(node.value, formulas).map((piece): Node =>
      "text" in piece
        ? { type: "text", value: piece.text }
        : { type: "element", tagName: "span", properties: { dataTex: piece.tex, dataDisplay: String(piece.display) }, children: [] },
    );
  }
  if (node.type !== "element") return [node];
  for (const [name, value] of Object.entries(node.properties)) {
    // In addresses the characters that hold places have been encoded.
    if (typeof value === "string") node.properties[name] = withoutPlaces(value.replace(/%EE%80%80(\d+)%EE%80%81/g, "\uE000$1\uE001"), formulas);
  }
  const inside = literal || node.tagName === "code";
  return [{ ...node, children: node.children.flatMap((child) => put(child, formulas, inside)) }];
}

/** The text of a node, formulas as they were written. */
export function textOf(node: Node | Element): string {
  if (node.type === "text") return node.value;
  if (node.type !== "element") return "";
  const tex = node.properties["dataTex"];
  return typeof tex === "string" ? tex : node.children.map(textOf).join("");
}

/** The rows of a table, as the texts of their cells. */
export function rowsOfTable(table: Element): string[][] {
  const rows: string[][] = [];
  const walk = (node: Node | Element): void => {
    if (node.type !== "element") return;
    if (node.tagName === "tr") rows.push(node.children.filter((cell) => cell.type === "element").map((cell) => textOf(cell).trim()));
    else node.children.forEach(walk);
  };
  walk(table);
  return rows;
}
