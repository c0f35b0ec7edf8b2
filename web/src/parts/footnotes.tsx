// The footnotes of a text: their numbers in it, and the list of them at its end. Each leads to the other.
import { createContext, use, useId, useMemo, type MouseEvent, type ReactNode } from "react";
import { useLocalization } from "../messages/localization";
import type { Block } from "./blocks";

interface Footnotes {
  /** What the identifiers of this text start with: a page has many texts. */
  prefix: string;
  /** The numbers of the footnotes, by their labels. */
  numbers: ReadonlyMap<string, number>;
  /** Whether footnotes may still arrive. */
  streaming: boolean;
}

const FootnotesContext = createContext<Footnotes | null>(null);

/** Returns the labels of the footnotes of a text in the order in which it refers to them. The others are the last. */
export function footnoteLabels(blocks: readonly Block[]): string[] {
  const defined = new Set(blocks.flatMap(({ kind, label }) => (kind === "footnote" ? [label] : [])));
  if (defined.size === 0) return [];
  const referred = blocks
    .filter(({ kind }) => kind === "markdown")
    .flatMap(({ raw }) => [...raw.replace(/(`+)[^`][^]*?\1/g, "").matchAll(/\[\^([^\]\s]{1,100})\]/g)])
    .map(([, label]) => label!);
  return [...new Set([...referred.filter((label) => defined.has(label)), ...defined])];
}

interface FootnotedProps {
  /** As footnoteLabels returns them. */
  labels: readonly string[];
  streaming: boolean;
  children: ReactNode;
  /** Renders the text of a footnote. */
  renderNote(label: string): ReactNode;
}

/** A text with its footnotes. */
export function Footnoted({ labels, streaming, children, renderNote }: FootnotedProps) {
  const { t } = useLocalization();
  const prefix = useId();
  const key = labels.join("\n");
  const context = useMemo(
    () => ({ prefix, numbers: new Map(labels.map((label, at) => [label, at + 1])), streaming }),
    [prefix, key, streaming],
  );
  return (
    <FootnotesContext value={context}>
      {children}
      {labels.length > 0 && (
        <section aria-label={t("transcript.footnotes")} className="footnotes">
          <ol>
            {labels.map((label, at) => (
              <li key={label} id={`${prefix}${at + 1}`} tabIndex={-1}>
                {renderNote(label)}{" "}
                <a href={`#${prefix}r${at + 1}`} aria-label={t("transcript.footnote.back")} onClick={follow}>
                  ↩
                </a>
              </li>
            ))}
          </ol>
        </section>
      )}
    </FootnotesContext>
  );
}

/** The number of a footnote. A label without a footnote is text. */
export function FootnoteReference({ label, children }: { label: string; children: string }) {
  const { t } = useLocalization();
  const footnotes = use(FootnotesContext);
  const number = footnotes?.numbers.get(label);
  if (footnotes === null || number === undefined) return footnotes?.streaming === true ? <sup>{label}</sup> : children;
  const { prefix } = footnotes;
  return (
    <sup>
      <a
        href={`#${prefix}${number}`}
        data-target={`${prefix}r${number}`}
        aria-label={t("transcript.footnote", { number })}
        onClick={follow}
      >
        {number}
      </a>
    </sup>
  );
}

/** Shows the target of a link within the text. The address of the page stays that of the conversation. */
function follow(event: MouseEvent<HTMLAnchorElement>): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const id = event.currentTarget.hash.slice(1);
  // A footnote can be referred to several times: the first one is shown.
  const target =
    document.getElementById(id) ?? document.querySelector<HTMLElement>(`[data-target="${CSS.escape(id)}"]`);
  target?.scrollIntoView({ block: "nearest" });
  target?.focus({ preventScroll: true });
}
