// Splits Markdown into blocks that are rendered and cached separately: while an answer streams, only its end is parsed
// again. Pure: the blocks depend only on the text, not on the steps in which it grew.
import { Lexer, Marked, type Token, type TokenizerExtension } from "marked";
import { unlessTooDeep } from "./nesting";
import { blockSyntax } from "./syntax";

export interface Block {
  kind: "markdown" | "code" | "math" | "definition" | "footnote";
  /** The source of the block, with the empty lines after it. */
  raw: string;
  /** code, math, footnote: the content without its delimiters. */
  text: string;
  /** code: the first word after the opening fence. */
  language: string;
  /** footnote: what refers to it. */
  label: string;
  /** code, math: whether the closing delimiter has arrived. true for all other kinds. */
  closed: boolean;
  /** The depth of a heading, from 1; 0: the block is not a heading. */
  depth: number;
}

export interface Blocks {
  text: string;
  list: readonly Block[];
}

/** The number of last blocks that added text may change: a list can absorb what looked like a paragraph after it. */
const unstableCount = 2;

const endsEmpty = /\n[ \t]*\n$/;

const mathOpens = /^ {0,3}(?:\$\$|\\\[)/;

/** A display formula: $$ or \[ at the start of a line. It must be closed before the next empty line. */
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
      return reach < text.length
        ? undefined
        : { type: "math", raw: text, text: text.slice(opening.length), closed: false };
    }
    const rest = /^[ \t]*(?:\n|$)/.exec(text.slice(at + end.length))?.[0];
    if (rest === undefined) return undefined;
    return {
      type: "math",
      raw: text.slice(0, at + end.length + rest.length),
      text: text.slice(opening.length, at),
      closed: true,
    };
  },
};

const grammar = new Marked({ gfm: true, extensions: [mathBlock, ...blockSyntax] });

/**
 * Returns the blocks of a text. Blocks of the previous text that added text cannot change are not parsed again;
 * unchanged blocks are the same objects as before.
 */
export function updateBlocks(before: Blocks | null, written: string): Blocks {
  const text = written.includes("\r") ? written.replace(/\r\n?/g, "\n") : written;
  if (before?.text === text) return before;
  const stable = before === null ? [] : stableBlocks(before.list);
  const length = stable.reduce((sum, block) => sum + block.raw.length, 0);
  if (before === null || !text.startsWith(before.text.slice(0, length))) return { text, list: parseBlocks(text, []) };
  return { text, list: [...stable, ...parseBlocks(text.slice(length), before.list.slice(stable.length))] };
}

/** The blocks that added text cannot change. The last of them ends with an empty line, which no paragraph crosses. */
function stableBlocks(list: readonly Block[]): readonly Block[] {
  let length = list.length - unstableCount;
  while (length > 0 && !endsEmpty.test(list[length - 1]!.raw)) length -= 1;
  return list.slice(0, Math.max(0, length));
}

function parseBlocks(text: string, known: readonly Block[]): Block[] {
  const list: Block[] = [];
  let lead = ""; // empty lines before the first block
  const tokens = unlessTooDeep<Token[]>(
    () => new Lexer(grammar.defaults).blockTokens(text),
    [{ type: "paragraph", raw: text, text, tokens: [] }],
  );
  for (const token of tokens) {
    const last = list.at(-1);
    if (token.type === "space") {
      if (last === undefined) lead += token.raw;
      else list[list.length - 1] = { ...last, raw: last.raw + token.raw };
    } else {
      list.push(blockOf(token, lead));
      lead = "";
    }
  }
  let from = 0; // raw is cut from the text, because the lexer may turn a trailing blank of a block into a newline
  return list.map((made, at) => {
    const block = { ...made, raw: text.slice(from, (from += made.raw.length)) };
    const same = known[at];
    return same !== undefined &&
      same.raw === block.raw &&
      same.kind === block.kind &&
      same.closed === block.closed &&
      same.depth === block.depth
      ? same
      : block;
  });
}

function blockOf(token: Token, lead: string): Block {
  const block: Block = {
    kind: "markdown",
    raw: lead + token.raw,
    text: "",
    language: "",
    label: "",
    closed: true,
    depth: 0,
  };
  switch (token.type) {
    case "code": {
      const fence = /^ {0,3}(`{3,}|~{3,})/.exec(token.raw)?.[1];
      const indented = token["codeBlockStyle"] === "indented" || fence === undefined;
      const closed = indented || new RegExp(`\\n {0,3}${fence[0]}{${fence.length},}[ \\t]*\\n*$`).test(token.raw);
      return {
        ...block,
        kind: "code",
        text: String(token["text"]),
        language: /^[^\s{,]*/.exec(String(token["lang"] ?? "").trim())![0],
        closed,
      };
    }
    case "math":
      return { ...block, kind: "math", text: String(token["text"]), closed: token["closed"] === true };
    case "def":
      return { ...block, kind: "definition" };
    case "footnote":
      return { ...block, kind: "footnote", text: String(token["text"]), label: String(token["label"]) };
    case "heading":
      return { ...block, depth: Number(token["depth"]) };
    default:
      return block;
  }
}

/** Returns the heading level of each block, from first on and without gaps; 0 for a block that is not a heading. */
export function headingLevels(list: readonly Block[], first: number): number[] {
  const open: number[] = [];
  return list.map(({ depth }) => {
    if (depth === 0) return 0;
    while (open.length > 0 && open.at(-1)! >= depth) open.pop();
    open.push(depth);
    return Math.min(6, first + open.length - 1);
  });
}

/** Removes an incomplete fence from the end of text that is still streaming, so that it is not shown. */
export function withoutPartialFence(text: string): string {
  return text.replace(/(^|\n) {0,3}(?:`{1,2}|~{1,2})$/, "");
}
