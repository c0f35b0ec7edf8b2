// Markdown as plain text: for the clipboard and for screen readers.
import { Marked, type Tokens } from "marked";
import { decodeEntities } from "./entities";
import { extractFormulas, restoreSource, splitPlaceholders } from "./math";
import { unlessTooDeep } from "./nesting";
import { blockSyntax, inlineSyntax } from "./syntax";

type Token = Tokens.Generic;

const reader = new Marked({ gfm: true, extensions: [...blockSyntax, ...inlineSyntax] });

/** Removes the marks of a text. Code and formulas stay as they are; list items keep their dashes and numbers. */
export function toPlainText(markdown: string): string {
  const { text, formulas } = extractFormulas(markdown);
  return restoreSource(blocksOf(read(text)), formulas).trim();
}

/** Returns the text in which a reader searches: as toPlainText, but without what the page does not display as text. */
export function toSearchedText(markdown: string): string {
  const { text, formulas } = extractFormulas(markdown);
  // A formula is searched without its delimiters, and apart from the text around it.
  return splitPlaceholders(blocksOf(read(text), false), formulas)
    .map((piece) => ("text" in piece ? piece.text : `\n${piece.tex.trim()}\n`))
    .join("");
}

/** Returns the first paragraph, heading, list or quote of a text as one plain line; "" if there is none. */
export function firstParagraph(markdown: string): string {
  const { text, formulas } = extractFormulas(markdown.slice(0, 8_000));
  const first = read(text).find((token) => ["paragraph", "heading", "list", "blockquote", "text"].includes(token.type));
  return first === undefined
    ? ""
    : restoreSource(blocksOf([first]), formulas)
        .replace(/\s+/g, " ")
        .trim();
}

const read = (markdown: string) =>
  unlessTooDeep(() => reader.lexer(markdown) as Token[], [{ type: "text", raw: markdown, text: markdown }]);

/** marks: whether lists have dashes and numbers, the cells of a row are on one line, and the lines of a paragraph stay. */
function blocksOf(tokens: readonly Token[], marks = true): string {
  return tokens
    .map((token): string => {
      switch (token.type) {
        case "space":
        case "def":
          return "";
        case "hr":
          return marks ? "---\n\n" : "";
        case "code":
          return `${token["text"]}\n\n`;
        case "html":
          return `${token.raw.trim()}\n\n`;
        case "blockquote":
          return blocksOf(token.tokens ?? [], marks);
        case "details":
          return `${inlineOf(token["summary"] as Token[], marks)}\n\n${blocksOf(token.tokens ?? [], marks)}`;
        case "footnote":
          return `[${token["label"]}] ${inlineOf(reader.Lexer.lexInline(String(token["text"])) as Token[], marks)}\n\n`;
        case "list":
          return `${listOf(token, marks)}\n\n`;
        case "table":
          return `${[token["header"], ...token["rows"]].map((row: { tokens: Token[] }[]) => row.map((cell) => inlineOf(cell.tokens, marks)).join(marks ? "\t" : "\n")).join("\n")}\n\n`;
        default:
          return `${inlineOf(token.tokens ?? [token], marks)}\n\n`;
      }
    })
    .join("");
}

function listOf(list: Token, marks: boolean): string {
  const first = Number(list["start"] || 1);
  return (list["items"] as { tokens: Token[] }[])
    .map(({ tokens }, at) => {
      const text = tokens
        .map((token) =>
          ["text", "paragraph"].includes(token.type)
            ? `${inlineOf(token.tokens ?? [token], marks)}\n`
            : token.type === "checkbox"
              ? marks
                ? `${token.raw.trim()} `
                : ""
              : blocksOf([token], marks),
        )
        .join("")
        .trim();
      return marks ? `${list["ordered"] ? `${first + at}.` : "-"} ${text.replaceAll("\n", "\n  ")}` : text;
    })
    .join("\n");
}

function inlineOf(tokens: readonly Token[], marks: boolean): string {
  return tokens
    .map((token): string => {
      switch (token.type) {
        case "br":
          return "\n";
        case "image":
          return token["text"] || token["href"];
        case "footnoteReference":
          return `[${token["label"]}]`;
        case "link":
          return inlineOf(token.tokens ?? [], marks);
        default: {
          if (token.tokens !== undefined && token.tokens.length > 0) return inlineOf(token.tokens, marks);
          const text = decodeEntities(String(token["text"] ?? token.raw));
          return marks ? text : text.replaceAll("\n", " ");
        }
      }
    })
    .join("");
}
