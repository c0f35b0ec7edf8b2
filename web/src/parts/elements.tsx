// The elements that Markdown may make, and how each is drawn. What is not here comes as React has it.
import type { Components } from "react-markdown";
import type { ComponentProps, ReactNode } from "react";
import { Icon } from "../controls/icon";
import { useSpeech } from "../words/speech";
import { Code } from "./code";
import { CopyButton } from "./copy-button";
import { csvOf } from "./csv";
import { Formula } from "./formula";
import { rowsOfTable, textOf, type Element } from "./tree";

function Anchor({ href, title, children }: ComponentProps<"a">) {
  if (href === undefined || href === "") return <span>{children}</span>;
  return (
    <a href={href} title={title ?? href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

/** Images of other sites are not fetched: what they show is told, and where they are. */
function Picture({ alt, src }: ComponentProps<"img">) {
  const { say } = useSpeech();
  const words = alt === undefined || alt === "" ? say("transcript.image") : say("transcript.image.of", { alt });
  if (typeof src !== "string" || src === "") return <span className="text-soft">{words}</span>;
  return (
    <Anchor href={src} title={src}>
      {words}
    </Anchor>
  );
}

function Task({ checked }: ComponentProps<"input">) {
  const { say } = useSpeech();
  return (
    <span data-task="" role="img" aria-label={say(checked ? "transcript.task.done" : "transcript.task.open")} className={`me-2 inline-flex size-4 items-center justify-center rounded-sm border align-[-0.15em] ${checked ? "border-tide bg-tide text-tide-ink" : "border-edge"}`}>
      {checked === true && <Icon name="check" size={12} />}
    </span>
  );
}

function Span(props: ComponentProps<"span"> & { "data-tex"?: string; "data-display"?: string }) {
  const tex = props["data-tex"];
  return tex === undefined ? <span>{props.children}</span> : <Formula tex={tex} display={props["data-display"] === "true"} />;
}

/** A block of code that stands within something else, as a list. */
function Fence({ node }: { node?: Element | undefined }) {
  const code = node?.children.find((child) => child.type === "element");
  if (code === undefined) return null;
  const name = [code.properties["className"]].flat().find((name) => String(name).startsWith("language-"));
  return <Code code={textOf(code).replace(/\n$/, "")} language={name === undefined || name === null ? "" : String(name).slice(9)} open={false} />;
}

function Table({ node, children }: { node?: Element | undefined; children?: ReactNode }) {
  const { say } = useSpeech();
  return (
    <div className="group/table my-4">
      <div tabIndex={0} role="group" aria-label={say("transcript.table")} className="overflow-x-auto">
        <table>{children}</table>
      </div>
      {node !== undefined && (
        <div className="mt-0.5 -ms-1.5">
          <CopyButton label={say("transcript.table.copy")} text={() => csvOf(rowsOfTable(node))} />
        </div>
      )}
    </div>
  );
}

/** Headings are drawn one level after the other below that of the message; those within other blocks are no headings of it. */
function headings(level: number): Components {
  const Heading = ({ children }: { children?: ReactNode }) => {
    if (level === 0) return <p dir="auto" className="heading">{children}</p>;
    const Tag = `h${level}` as "h3";
    return <Tag dir="auto">{children}</Tag>;
  };
  return { h1: Heading, h2: Heading, h3: Heading, h4: Heading, h5: Heading, h6: Heading };
}

const always: Components = {
  a: Anchor,
  img: Picture,
  input: Task,
  span: Span,
  pre: Fence,
  table: Table,
  p: ({ children }) => <p dir="auto">{children}</p>,
  ul: ({ children }) => <ul dir="auto">{children}</ul>,
  ol: ({ children, start }) => <ol dir="auto" start={start}>{children}</ol>,
  li: ({ children }) => <li dir="auto">{children}</li>,
  blockquote: ({ children }) => <blockquote dir="auto">{children}</blockquote>,
  th: ({ children, style }) => <th dir="auto" style={style}>{children}</th>,
  td: ({ children, style }) => <td dir="auto" style={style}>{children}</td>,
};

const byLevel = [0, 1, 2, 3, 4, 5, 6].map((level): Components => ({ ...always, ...headings(level) }));

/** The elements of a block whose heading has this level; 0: it has none. */
export function elementsAt(level: number): Components {
  return byLevel[level]!;
}
