// Markdown, block by block. A block that stands is drawn once; while text comes only the last one is read anew, with its
// open marks closed for the moment.
import { memo, useMemo, useRef } from "react";
import ReactMarkdown from "react-markdown";
import { useSpeech } from "../words/speech";
import { followable } from "./address";
import { growBlocks, headingLevels, withoutHalfFence, type Block, type Blocks } from "./blocks";
import { withMarksClosed } from "./closing";
import { Code } from "./code";
import { longestText, previewOf } from "./cut";
import { elementsAt } from "./elements";
import { Formula } from "./formula";
import { gfm } from "./gfm";
import { takeFormulas } from "./math";
import "./prose.css";
import { withFormulas, wordsOnly } from "./tree";

/** The level of the first heading in an answer: below the one that names the message. */
const firstHeading = 3;
/** A block of prose above this length, in characters, is shown as it was written. */
const longestProse = 40_000;

interface MarkdownProps {
  text: string;
  /** More of it is to come. */
  open: boolean;
}

export const Markdown = memo(function Markdown({ text, open }: MarkdownProps) {
  const before = useRef<Blocks | null>(null);
  const { list, levels, definitions } = useMemo(() => {
    const blocks = growBlocks(before.current, text.length > longestText * 2 ? text.slice(0, longestText * 2) : text);
    before.current = blocks;
    const definitions = blocks.list.filter((block) => block.kind === "definition");
    return { list: blocks.list, levels: headingLevels(blocks.list, firstHeading), definitions: definitions.map((block) => block.raw).join("\n") };
  }, [text]);
  return (
    <div className="prose">
      {list.map((block, at) => (
        <Shown key={at} block={block} level={levels[at]!} open={open && at === list.length - 1} definitions={/\[/.test(block.raw) ? definitions : ""} />
      ))}
    </div>
  );
});

interface ShownProps {
  block: Block;
  level: number;
  open: boolean;
  /** Addresses that links of this block may name. */
  definitions: string;
}

const Shown = memo(function Shown({ block, level, open, definitions }: ShownProps) {
  switch (block.kind) {
    case "definition":
      return null;
    case "code": {
      const going = open && !block.closed;
      const begun = !going || block.raw.includes("\n");
      return <Code code={going ? withoutHalfFence(begun ? block.text : "") : block.text} language={begun ? block.language : ""} open={going} />;
    }
    case "math":
      return block.closed ? <Formula tex={block.text.trim()} display /> : <p className="whitespace-pre-wrap">{block.raw}</p>;
    default:
      return block.raw.length > longestProse ? <Raw text={block.raw} /> : <Prose source={block.raw} level={level} open={open} definitions={definitions} />;
  }
});

function Prose({ source, level, open, definitions }: { source: string; level: number; open: boolean; definitions: string }) {
  const { text, formulas } = takeFormulas(source);
  const whole = open ? withMarksClosed(withoutHalfFence(text)) : text;
  return (
    <ReactMarkdown
      remarkPlugins={[gfm, wordsOnly]}
      rehypePlugins={[() => withFormulas(formulas)]}
      urlTransform={(address) => followable(address) ?? ""}
      components={elementsAt(level)}
    >
      {definitions === "" ? whole : `${whole}\n\n${definitions}`}
    </ReactMarkdown>
  );
}

/** What is too long to be read as Markdown. */
function Raw({ text }: { text: string }) {
  const { say } = useSpeech();
  const { lines, cut } = previewOf(text);
  return (
    <>
      <p dir="auto" className="whitespace-pre-wrap">
        {lines.join("\n")}
      </p>
      {cut && <p className="text-sm text-faint">{say("transcript.cut")}</p>}
    </>
  );
}
