// The syntax that the app adds to GitHub Flavored Markdown: a few elements of HTML without attributes, highlighted text and footnotes.
// The service renders the same (http/markdown).
import type { TokenizerAndRendererExtension, TokenizerThis, Tokens } from "marked";
import { maxNesting } from "./nesting";

/** The elements of HTML around text of one block. */
export type SafeElement = "kbd" | "sub" | "sup" | "mark";

/**
 * An element of HTML around text of one block, or a line break. It has no start function, which would search the rest of the block
 * after every token: plain text ends before each "<" anyway, as before each "[".
 */
const safeHTML: TokenizerAndRendererExtension = {
  name: "safe",
  level: "inline",
  tokenizer(text: string) {
    const lineBreak = /^<br ?\/?>/i.exec(text)?.[0];
    if (lineBreak !== undefined) return { type: "br", raw: lineBreak };
    const found = /^<(kbd|su[bp]|mark)>([^]{1,1000}?)<\/\1>/i.exec(text);
    if (found === null) return undefined;
    const [raw, tag, inside] = found;
    return { type: "safe", tag: tag!.toLowerCase(), raw, tokens: this.lexer.inlineTokens(inside!) };
  },
  childTokens: ["tokens"],
};

/** Text between two equals signs on each side. Within a longer run of them, it is text. */
const highlighted: TokenizerAndRendererExtension = {
  name: "highlighted",
  level: "inline",
  start: (text: string) => text.search(/==(?!=)/),
  tokenizer(text: string, before) {
    const found = /^==(?![\s=])([^]{1,1000}?)(?<![\s=])==(?!=)/.exec(text);
    if (found === null || before.at(-1)?.raw.endsWith("=") === true) return undefined;
    return { type: "safe", tag: "mark", raw: found[0], tokens: this.lexer.inlineTokens(found[1]!) };
  },
};

/** [^label] in a text. */
const footnoteReference: TokenizerAndRendererExtension = {
  name: "footnoteReference",
  level: "inline",
  tokenizer(text: string) {
    const found = /^\[\^([^\]\s]{1,100})\]/.exec(text);
    return found === null ? undefined : { type: "footnoteReference", raw: found[0], label: found[1]! };
  },
};

/** [^label]: at the start of a line, with its text. Further paragraphs of it are indented by four spaces. */
const footnote: TokenizerAndRendererExtension = {
  name: "footnote",
  level: "block",
  start: (text: string) => indexAfterNewline(text, /\n {0,3}\[\^[^\]\s]+\]:/),
  tokenizer(text: string) {
    const found =
      /^ {0,3}\[\^([^\]\s]{1,100})\]:[ \t]*([^\n]*(?:\n(?:[ \t]*\n)* {4}[^\n]*|\n(?! {4}|[ \t]*(?:\n|$)| {0,3}\[\^[^\]\s]+\]:)[^\n]+)*)(?:\n|$)/.exec(
        text,
      );
    if (found === null) return undefined;
    const [raw, label, body] = found;
    return { type: "footnote", raw, label: label!, text: body!.replace(/^ {4}/gm, "").trim() };
  },
};

const detailsTag = /^ {0,3}<(\/?)details>/i;

/** Returns the positions at which the content of the details at the start of a text ends, and after their end tag. */
function endOfDetails(text: string): [content: number, end: number] | null {
  let depth = 0;
  let fence: string | null = null; // of the code in which the line is
  for (let at = 0; at < text.length;) {
    const next = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at) + 1;
    const line = text.slice(at, next);
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) === true && line.trim() === mark) fence = null;
    } else if (mark !== undefined) fence = mark;
    else {
      const tag = detailsTag.exec(line);
      if (tag !== null) depth += tag[1] === "" ? 1 : -1;
      if (depth > maxNesting) return null;
      if (depth === 1 && /\S<\/details>\s*$/i.test(line)) depth = 0; // at the end of a line
      if (depth === 0) return [at + line.search(/<\/details>/i), next];
    }
    at = next;
  }
  return [text.length, text.length];
}

/** A section that can be opened, with its title. Without its end tag, it extends to the end of the text. */
const details: TokenizerAndRendererExtension = {
  name: "details",
  level: "block",
  start: (text: string) => indexAfterNewline(text, /\n {0,3}<details>/i),
  tokenizer(text: string) {
    const opening = detailsTag.exec(text);
    if (opening === null || opening[1] !== "") return undefined;
    const ends = endOfDetails(text);
    if (ends === null) return undefined;
    const content = text.slice(opening[0].length, ends[0]);
    const title = /^\s*<summary>([^]{0,1000}?)<\/summary>/i.exec(content);
    return {
      type: "details",
      raw: text.slice(0, ends[1]),
      summary: title === null ? [] : this.lexer.inlineTokens(title[1]!.trim()),
      tokens: blocksIn(this, content.slice(title?.[0].length ?? 0).replace(/^\s*\n/, "")),
    };
  },
  childTokens: ["summary", "tokens"],
};

/** Parses blocks that are inside another one. */
function blocksIn({ lexer }: TokenizerThis, text: string): Tokens.Generic[] {
  const { top } = lexer.state;
  lexer.state.top = true;
  const tokens = lexer.blockTokens(text, []);
  lexer.state.top = top;
  return tokens as Tokens.Generic[];
}

function indexAfterNewline(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text);
  return found === null ? undefined : found.index + 1;
}

export const blockSyntax = [details, footnote];
export const inlineSyntax = [safeHTML, highlighted, footnoteReference];

/** The kinds of alerts: quotes that start with a line such as [!NOTE]. */
export const alertKinds = ["note", "tip", "important", "warning", "caution"] as const;
export type AlertKind = (typeof alertKinds)[number];

/** Returns the kind of alert that a quote is, and its blocks without the line that says so; null: it is a plain quote. */
export function alertOf(blocks: readonly Tokens.Generic[]): { kind: AlertKind; blocks: Tokens.Generic[] } | null {
  const [first, ...rest] = blocks;
  const [text, ...others] = (first?.type === "paragraph" && first.tokens) || [];
  const found = text?.type === "text" ? /^\[!([a-z]+)\][ \t]*(?:\n|$)/i.exec(text.raw) : null;
  const kind = alertKinds.find((one) => one === found?.[1]?.toLowerCase());
  if (found === null || kind === undefined) return null;
  const breaks = others[0]?.type === "br"; // after two spaces
  if (!breaks && others.length > 0 && found[0] === text!.raw && !found[0].endsWith("\n")) return null; // the line goes on
  const remaining = text!.raw.slice(found[0].length);
  const after = remaining === "" && breaks ? others.slice(1) : others;
  const tokens = remaining === "" ? after : [{ ...text!, raw: remaining, text: remaining }, ...after];
  return { kind, blocks: tokens.length === 0 ? rest : [{ ...first!, tokens }, ...rest] };
}
