// Transforms the tree of parsed Markdown before it is rendered, and reads texts from it.
import type { ExtraProps } from "react-markdown";
import { splitPlaceholders, restoreSource, type Formula } from "./math";

export type Element = NonNullable<ExtraProps["node"]>;
type Node = Element["children"][number];

/** A remark plugin that disables the parsing of raw HTML, so that it is shown as text. */
export function disableRawHTML(this: { data(): object }): void {
  const data = this.data() as { micromarkExtensions?: object[] };
  (data.micromarkExtensions ??= []).push({
    disable: { null: ["htmlFlow", "htmlText"] },
  });
}

/** Replaces placeholders by formulas: by `span`s with data-tex in text, by the source in code and attributes. */
export function restoreFormulas(formulas: readonly Formula[]): (root: { children: unknown[] }) => void {
  return (root) => {
    if (formulas.length > 0)
      root.children = (root.children as Node[]).flatMap((child) => restoreIn(child, formulas, false));
  };
}

function restoreIn(node: Node, formulas: readonly Formula[], literal: boolean): Node[] {
  if (node.type === "text") {
    if (literal) return [{ ...node, value: restoreSource(node.value, formulas) }];
    return splitPlaceholders(node.value, formulas).map((piece): Node =>
      "text" in piece
        ? { type: "text", value: piece.text }
        : {
            type: "element",
            tagName: "span",
            properties: { dataTex: piece.tex, dataDisplay: String(piece.display) },
            children: [],
          },
    );
  }
  if (node.type !== "element") return [node];
  for (const [name, value] of Object.entries(node.properties)) {
    // In URLs the placeholder characters are percent-encoded.
    if (typeof value === "string")
      node.properties[name] = restoreSource(value.replace(/%EE%80%80(\d+)%EE%80%81/g, "\uE000$1\uE001"), formulas);
  }
  const inside = literal || node.tagName === "code";
  return [{ ...node, children: node.children.flatMap((child) => restoreIn(child, formulas, inside)) }];
}

/**
 * Gives the outermost elements the direction of their text, and inline code its own. A nested dir="auto" would hide its
 * text from the outer ones.
 */
export function setDirections(root: { children: unknown[] }): void {
  for (const child of root.children as Node[]) {
    if (child.type !== "element") continue;
    child.properties["dir"] = "auto";
    isolateCode(child);
  }
}

function isolateCode(element: Element): void {
  if (element.tagName === "code") element.properties["dir"] = "ltr";
  for (const child of element.children) if (child.type === "element") isolateCode(child);
}

/** Returns the text of a node; a formula as its TeX source without delimiters. */
export function textOf(node: Node | Element): string {
  if (node.type === "text") return node.value;
  if (node.type !== "element") return "";
  const tex = node.properties["dataTex"];
  return typeof tex === "string" ? tex : node.children.map(textOf).join("");
}

/** Returns the rows of a table as the texts of their cells. */
export function rowsOfTable(table: Element): string[][] {
  const rows: string[][] = [];
  const walk = (node: Node | Element): void => {
    if (node.type !== "element") return;
    if (node.tagName === "tr")
      rows.push(node.children.filter((cell) => cell.type === "element").map((cell) => textOf(cell).trim()));
    else node.children.forEach(walk);
  };
  walk(table);
  return rows;
}
