// Cuts Markdown into blocks that are drawn, and remembered, each by itself: while an answer streams only its end is
// read anew. Pure: any way of growing a text leads to the same blocks.
import { Lexer, Marked, type Token, type TokenizerExtension } from "marked";

export interface Block {
  kind: "markdown" | "code" | "math" | "definition";
  /** The block as it was written, with the empty lines behind it. */
  raw: string;
  /** code, math: what is inside. */
  text: string;
  /** code: the word behind the fence. */
  language: string;
  /** code: whether the fence that opened it was closed. math: whether it was. */
  closed: boolean;
  /** How deep a heading is, from 1; 0: no heading. */
  depth: number;
}

export interface Blocks {
  text: string;
  list: readonly Block[];
}

/** So many blocks at the end may still change when text is added: a list may take in what looked like a paragraph behind it. */
const unsettled = 2;

const endsEmpty = /\n[ \t]*\n$/;

const mathOpens = /^ {0,3}(?:\$\$|\\\[)/;

/** A formula of its own: dollars or brackets at the beginning of a line. It ends at the latest before an empty line. */
const mathBlock: TokenizerExtension = {
  name: "math",
  level: "block",
  start(text: string) {
    const found = /\n {0,3}(?:\$\$|\\\[)/.exec(text);
    return found === null ? undefined : found.index + 1;
  },
  tokenizer(text: string) {
    const opening = mathOpens.exec(text)?.[0];
    if (opening === undefined) return undefined;
    const end = opening.endsWith("$$") ? "$$" : "\\]";
    const reach = /\n[ \t]*\n/.exec(text)?.index ?? text.length;
    const at = text.indexOf(end, opening.length);
    if (at < 0 || at >= reach) {
      return reach < text.length ? undefined : { type: "math", raw: text, text: text.slice(opening.length), closed: false };
    }
    const rest = /^[ \t]*(?:\n|$)/.exec(text.slice(at + end.length))?.[0];
    if (rest === undefined) return undefined;
    return { type: "math", raw: text.slice(0, at + end.length + rest.length), text: text.slice(opening.length, at), closed: true };
  },
};

const grammar = new Marked({ gfm: true, extensions: [mathBlock] });

/** The blocks of a text; what stands since the time before is not read again, and its blocks are the same objects. */
export function growBlocks(before: Blocks | null, written: string): Blocks {
  const text = written.includes("\r") ? written.replace(/\r\n?/g, "\n") : written;
  if (before?.text === text) return before;
  const standing = before === null ? [] : settled(before.list);
  const length = standing.reduce((sum, block) => sum + block.raw.length, 0);
  if (before === null || !text.startsWith(before.text.slice(0, length))) return { text, list: read(text, []) };
  return { text, list: [...standing, ...read(text.slice(length), before.list.slice(standing.length))] };
}

/** What no further text changes: blocks before an empty line, which no paragraph crosses. */
function settled(list: readonly Block[]): readonly Block[] {
  let length = list.length - unsettled;
  while (length > 0 && !endsEmpty.test(list[length - 1]!.raw)) length -= 1;
  return list.slice(0, Math.max(0, length));
}

function read(text: string, known: readonly Block[]): Block[] {
  const list: Block[] = [];
  let lead = ""; // empty lines before the first block
  for (const token of new Lexer(grammar.defaults).blockTokens(text)) {
    const last = list.at(-1);
    if (token.type === "space") {
      if (last === undefined) lead += token.raw;
      else list[list.length - 1] = { ...last, raw: last.raw + token.raw };
    } else {
      list.push(blockOf(token, lead));
      lead = "";
    }
  }
  let from = 0; // the lexer may write a blank at the end of a block as a new line
  return list.map((made, at) => {
    const block = { ...made, raw: text.slice(from, (from += made.raw.length)) };
    const same = known[at];
    return same !== undefined && same.raw === block.raw && same.kind === block.kind && same.closed === block.closed && same.depth === block.depth ? same : block;
  });
}

function blockOf(token: Token, lead: string): Block {
  const block: Block = { kind: "markdown", raw: lead + token.raw, text: "", language: "", closed: true, depth: 0 };
  switch (token.type) {
    case "code": {
      const fence = /^ {0,3}(`{3,}|~{3,})/.exec(token.raw)?.[1];
      const indented = token["codeBlockStyle"] === "indented" || fence === undefined;
      const closed = indented || new RegExp(`\\n {0,3}${fence[0]}{${fence.length},}[ \\t]*\\n*$`).test(token.raw);
      return { ...block, kind: "code", text: String(token["text"]), language: /^[^\s{,]*/.exec(String(token["lang"] ?? "").trim())![0], closed };
    }
    case "math":
      return { ...block, kind: "math", text: String(token["text"]), closed: token["closed"] === true };
    case "def":
      return { ...block, kind: "definition" };
    case "heading":
      return { ...block, depth: Number(token["depth"]) };
    default:
      return block;
  }
}

/** The level of each block that is a heading, beginning at first and never leaving one out; 0 for all others. */
export function headingLevels(list: readonly Block[], first: number): number[] {
  const open: number[] = [];
  return list.map(({ depth }) => {
    if (depth === 0) return 0;
    while (open.length > 0 && open.at(-1)! >= depth) open.pop();
    open.push(depth);
    return Math.min(6, first + open.length - 1);
  });
}

/** Code as it is shown while its end is not there: a half fence is no line of it. */
export function withoutHalfFence(text: string): string {
  return text.replace(/(^|\n) {0,3}(?:`{1,2}|~{1,2})$/, "");
}
