// The React components for the elements of parsed Markdown. Elements that are not listed here render as plain HTML
// elements.
import type { Components } from "react-markdown";
import type { ComponentProps } from "react";
import { Icon } from "../controls/icon";
import { useLocalization } from "../messages/localization";
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

/** Images are not fetched: a link to the image with its alternative text is shown instead. */
function ImageLink({ alt, src }: ComponentProps<"img">) {
  const { t } = useLocalization();
  const label = alt === undefined || alt === "" ? t("transcript.image") : t("transcript.image.of", { alt });
  if (typeof src !== "string" || src === "") return <span className="text-soft">{label}</span>;
  return (
    <Anchor href={src} title={src}>
      {label}
    </Anchor>
  );
}

function TaskCheckbox({ checked }: ComponentProps<"input">) {
  const { t } = useLocalization();
  return (
    <span
      data-task=""
      role="img"
      aria-label={t(checked ? "transcript.task.done" : "transcript.task.open")}
      className={`me-2 inline-flex size-4 items-center justify-center rounded-sm border align-[-0.15em] ${checked ? "border-accent bg-accent text-accent-ink" : "border-edge"}`}
    >
      {checked === true && <Icon name="check" size={12} />}
    </span>
  );
}

function Span(props: ComponentProps<"span"> & { "data-tex"?: string; "data-display"?: string }) {
  const tex = props["data-tex"];
  return tex === undefined ? (
    <span>{props.children}</span>
  ) : (
    <Formula tex={tex} display={props["data-display"] === "true"} />
  );
}

/** A code block inside another block, for example in a list. */
function NestedCode({ node }: { node?: Element | undefined }) {
  const code = node?.children.find((child) => child.type === "element");
  if (code === undefined) return null;
  const name = [code.properties["className"]].flat().find((name) => String(name).startsWith("language-"));
  return (
    <Code
      code={textOf(code).replace(/\n$/, "")}
      language={name === undefined || name === null ? "" : String(name).slice(9)}
      streaming={false}
    />
  );
}

function Table({ node, dir, children }: ComponentProps<"table"> & { node?: Element | undefined }) {
  const { t } = useLocalization();
  return (
    <div dir={dir} className="group/table my-4">
      <div tabIndex={0} role="group" aria-label={t("transcript.table")} className="overflow-x-auto">
        <table>{children}</table>
      </div>
      {node !== undefined && (
        <div className="mt-0.5 -ms-1.5">
          <CopyButton label={t("transcript.table.copy")} text={() => csvOf(rowsOfTable(node))} />
        </div>
      )}
    </div>
  );
}

/**
 * The components for headings. A block that is a heading has a level below the heading of the message; a heading inside
 * another block (level 0) renders as a paragraph.
 */
function headingComponents(level: number): Components {
  const Heading = ({ dir, children }: ComponentProps<"h3">) => {
    const Tag = `h${level}` as "h3";
    return level === 0 ? <p className="heading">{children}</p> : <Tag dir={dir}>{children}</Tag>;
  };
  return { h1: Heading, h2: Heading, h3: Heading, h4: Heading, h5: Heading, h6: Heading };
}

const baseComponents: Components = {
  a: Anchor,
  img: ImageLink,
  input: TaskCheckbox,
  span: Span,
  pre: NestedCode,
  table: Table,
};

const byLevel = [0, 1, 2, 3, 4, 5, 6].map((level): Components => ({ ...baseComponents, ...headingComponents(level) }));

/** Returns the components for a block with this heading level; 0: the block is not a heading. */
export function componentsFor(level: number): Components {
  return byLevel[level]!;
}
