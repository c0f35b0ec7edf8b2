// Renders Markdown block by block. A complete block renders once; while text streams, only the end is parsed again,
// with its open marks closed temporarily.
import { memo, useMemo, useRef } from "react";
import { useLocalization } from "../messages/localization";
import { updateBlocks, headingLevels, withoutPartialFence, type Block, type Blocks } from "./blocks";
import { withMarksClosed } from "./close-marks";
import { Code } from "./code";
import { maxTextLength, previewOf } from "./preview";
import { renderMarkdown } from "./elements";
import { footnoteLabels, Footnoted } from "./footnotes";
import { Formula } from "./formula";
import { extractFormulas } from "./math";
import "./prose.css";

/** The level of the first heading in an answer: below the heading of the message. */
const firstHeadingLevel = 3;
/**
 * A longer block of prose, in characters, and one with more marks, is shown as plain text: the time of the parser grows
 * with the square of the number of marks that are not closed.
 */
const maxProseLength = 40_000;
const maxMarks = 4_000;

interface MarkdownProps {
  text: string;
  /** The text is still streaming. */
  streaming: boolean;
}

export const Markdown = memo(function Markdown({ text, streaming: open }: MarkdownProps) {
  const before = useRef<Blocks | null>(null);
  const { list, levels, definitions, labels } = useMemo(() => {
    const blocks = updateBlocks(
      before.current,
      text.length > maxTextLength * 2 ? text.slice(0, maxTextLength * 2) : text,
    );
    before.current = blocks;
    const definitions = blocks.list.filter((block) => block.kind === "definition");
    return {
      list: blocks.list,
      levels: headingLevels(blocks.list, firstHeadingLevel),
      labels: footnoteLabels(blocks.list),
      definitions: definitions.map((block) => block.raw).join("\n"),
    };
  }, [text]);
  return (
    <div className="prose" data-live={open ? "" : undefined}>
      <Footnoted
        labels={labels}
        streaming={open}
        renderNote={(label) => {
          const note = list.find((block) => block.kind === "footnote" && block.label === label)!;
          return <Prose source={note.text} level={0} open={open} definitions={definitions} />;
        }}
      >
        {list.map((block, at) => (
          <BlockView
            key={at}
            block={block}
            level={levels[at]!}
            open={open && at === list.length - 1}
            definitions={/\[/.test(block.raw) ? definitions : ""}
          />
        ))}
      </Footnoted>
    </div>
  );
});

interface BlockProps {
  block: Block;
  level: number;
  open: boolean;
  /** The link definitions of all blocks, which reference links of this block may use. */
  definitions: string;
}

const BlockView = memo(function BlockView({ block, level, open, definitions }: BlockProps) {
  switch (block.kind) {
    case "definition":
    case "footnote": // at the end of the text
      return null;
    case "code": {
      const streaming = open && !block.closed;
      const fenceComplete = !streaming || block.raw.includes("\n");
      return (
        <Code
          code={streaming ? withoutPartialFence(fenceComplete ? block.text : "") : block.text}
          language={fenceComplete ? block.language : ""}
          streaming={streaming}
        />
      );
    }
    case "math":
      return block.closed ? (
        <Formula tex={block.text.trim()} display />
      ) : (
        <p className="whitespace-pre-wrap">{block.raw}</p>
      );
    default:
      return block.raw.length > maxProseLength || (block.raw.match(/[*_~`[\]]/g)?.length ?? 0) > maxMarks ? (
        <PlainBlock text={block.raw} />
      ) : (
        <Prose source={block.raw} level={level} open={open} definitions={definitions} />
      );
  }
});

function Prose({
  source,
  level,
  open,
  definitions,
}: {
  source: string;
  level: number;
  open: boolean;
  definitions: string;
}) {
  const { text, formulas } = extractFormulas(source);
  const whole = open ? withMarksClosed(withoutPartialFence(text)) : text;
  return renderMarkdown(definitions === "" ? whole : `${whole}\n\n${definitions}`, { formulas, level });
}

/** A block that is too long to be parsed as Markdown. */
function PlainBlock({ text }: { text: string }) {
  const { t } = useLocalization();
  const { lines, cut } = previewOf(text);
  return (
    <>
      <p dir="auto" className="whitespace-pre-wrap">
        {lines.join("\n")}
      </p>
      {cut && <p className="text-sm text-faint">{t("transcript.cut")}</p>}
    </>
  );
}
