// Renders the tokens of parsed Markdown as React elements. Raw HTML is shown as text, except a few elements.
import { Marked, type Tokens } from "marked";
import { Fragment, type ReactNode } from "react";
import { Icon } from "../controls/icon";
import { useLocalization } from "../messages/localization";
import { Cited, hasCitations } from "./cited";
import { Code } from "./code";
import { CopyButton } from "./copy-button";
import { copyText } from "./export-text";
import { csvOf } from "./csv";
import { decodeEntities } from "./entities";
import { FootnoteReference } from "./footnotes";
import { Formula } from "./formula";
import { linkURL } from "./links";
import { maxNesting, unlessTooDeep } from "./nesting";
import { restoreSource, splitPlaceholders, type Formula as FormulaSource } from "./math";
import { alertOf, blockSyntax, inlineSyntax, type AlertKind, type SafeElement } from "./syntax";

type Token = Tokens.Generic;

/** GitHub Flavored Markdown without raw HTML, except a few elements. A single tilde does not strike text through: it often means "about". */
const grammar = new Marked({
  gfm: true,
  extensions: [...blockSyntax, ...inlineSyntax],
  tokenizer: {
    html: () => undefined,
    tag: () => undefined,
    del: (source) => (source.startsWith("~~") ? false : undefined), // false: as usual
  },
});

interface Source {
  /** The formulas whose placeholders the text contains. */
  formulas: readonly FormulaSource[];
  /** The heading level of the block; 0: a heading in it, for example in a quote, renders as a paragraph. */
  level: number;
}

/** A source with the number of elements around the rendered one. */
interface Nested extends Source {
  depth: number;
}

/**
 * Renders a block of Markdown. Its outermost elements have the direction of their text: a nested dir="auto" would hide
 * its text from the outer ones.
 */
export function renderMarkdown(text: string, source: Source): ReactNode {
  const plain = [{ type: "text", raw: text, text, tokens: [{ type: "escape", raw: text, text }] }];
  const tokens = unlessTooDeep(() => grammar.lexer(text) as Token[], plain);
  return renderBlocks(tokens, { ...source, depth: 0 }, "auto");
}

function renderBlocks(tokens: readonly Token[], around: Nested, dir?: "auto"): ReactNode {
  const source = { ...around, depth: around.depth + 1 };
  if (source.depth > maxNesting) return asWritten(tokens);
  return tokens.map((token, at) => <Fragment key={at}>{renderBlock(token, source, dir)}</Fragment>);
}

function renderBlock(token: Token, source: Nested, dir: "auto" | undefined): ReactNode {
  const inside = token.tokens ?? [];
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      const Tag = `h${source.level}` as "h3";
      const content = renderInline(inside, source);
      return source.level === 0 ? <p className="heading">{content}</p> : <Tag dir={dir}>{content}</Tag>;
    }
    case "blockquote": {
      const alert = alertOf(inside);
      return (
        <blockquote dir={dir} data-alert={alert?.kind}>
          {alert !== null && <AlertTitle kind={alert.kind} />}
          {renderBlocks(alert?.blocks ?? inside, source)}
        </blockquote>
      );
    }
    case "details":
      return (
        <details dir={dir}>
          <summary>{renderInline(token["summary"] as Token[], source)}</summary>
          {renderBlocks(inside, source)}
        </details>
      );
    case "footnote": // inside another block; the others are blocks of their own
      return <p dir={dir}>{renderText(token.raw, source.formulas)}</p>;
    case "list": {
      const items = (token as Tokens.List).items.map((item, at) => (
        <li key={at}>{renderBlocks(item.tokens, source)}</li>
      ));
      return token["ordered"] ? (
        <ol dir={dir} start={Number(token["start"])}>
          {items}
        </ol>
      ) : (
        <ul dir={dir}>{items}</ul>
      );
    }
    case "code": // only inside another block, for example in a list
      return (
        <Code
          code={restoreSource(String(token["text"]), source.formulas)}
          language={/^[^\s{,]*/.exec(String(token["lang"] ?? ""))![0]}
          streaming={false}
        />
      );
    case "table":
      return <Table table={token as Tokens.Table} source={source} dir={dir} />;
    case "hr":
      return <hr />;
    case "checkbox":
      return <TaskCheckbox checked={token["checked"] === true} />;
    case "text": // the text of an item in a list without empty lines
      return dir === undefined ? renderInline(inside, source) : <p dir={dir}>{renderInline(inside, source)}</p>;
    default:
      return <p dir={dir}>{renderInline(inside, source)}</p>;
  }
}

function renderInline(tokens: readonly Token[], around: Nested): ReactNode {
  const source = { ...around, depth: around.depth + 1 };
  if (source.depth > maxNesting) return asWritten(tokens);
  return tokens.map((token, at) => <Fragment key={at}>{renderSpan(token, source)}</Fragment>);
}

function renderSpan(token: Token, source: Nested): ReactNode {
  const { formulas } = source;
  const inside = token.tokens ?? [];
  switch (token.type) {
    case "strong":
      return <strong>{renderInline(inside, source)}</strong>;
    case "em":
      return <em>{renderInline(inside, source)}</em>;
    case "del":
      return <del>{renderInline(inside, source)}</del>;
    case "safe": {
      const Tag = token["tag"] as SafeElement;
      return <Tag>{renderInline(inside, source)}</Tag>;
    }
    case "footnoteReference":
      return <FootnoteReference label={String(token["label"])}>{token.raw}</FootnoteReference>;
    case "codespan":
      return <code dir="ltr">{restoreSource(String(token["text"]), formulas)}</code>;
    case "br":
      return <br />;
    case "checkbox":
      return <TaskCheckbox checked={token["checked"] === true} />;
    case "link":
      return (
        <Anchor
          href={addressOf(token, formulas)}
          title={titleOf(token, formulas)}
          bare={token["text"] === token["href"]}
        >
          {renderInline(inside, source)}
        </Anchor>
      );
    case "image":
      return <ImageLink alt={textOf(inside, formulas)} src={addressOf(token, formulas)} />;
    case "escape":
      return String(token["text"]);
    default:
      return inside.length > 0
        ? renderInline(inside, source)
        : renderText(String(token["text"] ?? token.raw), formulas);
  }
}

function renderText(text: string, formulas: readonly FormulaSource[]): ReactNode {
  const decoded = decodeEntities(text);
  if (formulas.length === 0) return withCitations(decoded);
  return splitPlaceholders(decoded, formulas).map((piece, at) =>
    "text" in piece ? (
      <Fragment key={at}>{withCitations(piece.text)}</Fragment>
    ) : (
      <Formula key={at} tex={piece.tex} display={piece.display} />
    ),
  );
}

const withCitations = (text: string): ReactNode => (hasCitations(text) ? <Cited text={text} /> : text);

const asWritten = (tokens: readonly Token[]): string => tokens.map(({ raw }) => raw).join("");

/** Returns the text of tokens; a formula as its TeX source without delimiters. */
function textOf(tokens: readonly Token[], formulas: readonly FormulaSource[]): string {
  return tokens
    .map((token) => {
      if (token.tokens !== undefined && token.tokens.length > 0) return textOf(token.tokens, formulas);
      const text = String(token["text"] ?? token.raw);
      return splitPlaceholders(token.type === "text" ? decodeEntities(text) : text, formulas)
        .map((piece) => ("text" in piece ? piece.text : piece.tex))
        .join("");
    })
    .join("");
}

/** Returns the URL of a link or an image, with percent-encoded characters; undefined if it may not become a link. */
function addressOf(token: Token, formulas: readonly FormulaSource[]): string | undefined {
  try {
    return linkURL(encodeURI(decodeEntities(restoreSource(String(token["href"]), formulas))).replace(/%25/g, "%"));
  } catch {
    return undefined; // half of a surrogate pair
  }
}

function titleOf(token: Token, formulas: readonly FormulaSource[]): string | undefined {
  return token["title"] ? decodeEntities(restoreSource(String(token["title"]), formulas)) : undefined;
}

function Anchor({
  href,
  title,
  bare = false,
  children,
}: {
  href: string | undefined;
  title?: string | undefined;
  /** Whether its text is the address, which is then not printed after it. */
  bare?: boolean;
  children: ReactNode;
}) {
  if (href === undefined) return <span>{children}</span>;
  return (
    <a
      href={href}
      title={title ?? href}
      data-bare={bare ? "" : undefined}
      target="_blank"
      rel="noopener noreferrer nofollow"
    >
      {children}
    </a>
  );
}

/** Images are not fetched: a link to the image with its alternative text is shown instead. */
function ImageLink({ alt, src }: { alt: string; src: string | undefined }) {
  const { t } = useLocalization();
  const label = alt === "" ? t("transcript.image") : t("transcript.image.of", { alt });
  return src === undefined ? <span className="text-soft">{label}</span> : <Anchor href={src}>{label}</Anchor>;
}

function AlertTitle({ kind }: { kind: AlertKind }) {
  const { t } = useLocalization();
  return <p data-title="">{t(`transcript.alert.${kind}`)}</p>;
}

function TaskCheckbox({ checked }: { checked: boolean }) {
  const { t } = useLocalization();
  return (
    <span
      data-task=""
      role="img"
      aria-label={t(checked ? "transcript.task.done" : "transcript.task.open")}
      className={`me-2 inline-flex size-4 items-center justify-center rounded-sm border align-[-0.15em] ${checked ? "border-accent bg-accent text-accent-ink" : "border-edge"}`}
    >
      {checked && <Icon name="check" size={12} />}
    </span>
  );
}

function Table({ table, source, dir }: { table: Tokens.Table; source: Nested; dir: "auto" | undefined }) {
  const { t } = useLocalization();
  const { header, rows } = table;
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td") => (
    <tr>
      {row.map(({ tokens, align }, at) => (
        <Cell key={at} style={align === null ? undefined : { textAlign: align }}>
          {tokens.length === 0 ? null : renderInline(tokens, source)}
        </Cell>
      ))}
    </tr>
  );
  const csv = () =>
    csvOf([header, ...rows].map((row) => row.map(({ tokens }) => textOf(tokens, source.formulas).trim())));
  return (
    <div dir={dir} className="group/table my-4">
      <div tabIndex={0} role="group" aria-label={t("transcript.table")} className="overflow-x-auto">
        <table>
          <thead>{cells(header, "th")}</thead>
          {rows.length > 0 && (
            <tbody>
              {rows.map((row, at) => (
                <Fragment key={at}>{cells(row, "td")}</Fragment>
              ))}
            </tbody>
          )}
        </table>
      </div>
      <div className="mt-0.5 -ms-1.5">
        <CopyButton label={t("transcript.table.copy")} copy={() => copyText(csv())} />
      </div>
    </div>
  );
}
