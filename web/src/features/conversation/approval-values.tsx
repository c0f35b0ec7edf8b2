// The exact input of a call that asks for approval: its values as lines, and all of it as JSON.
import { Fragment } from "react";
import { Disclosure } from "../../parts/disclosure";
import { Icon } from "../../controls/icon";
import { approvingMessages } from "../../messages/approving";
import { useMessages } from "../../messages/localization";
import { piecesOf, revealHidden } from "./approval-input";

export function ApprovalInput({ input, marked }: { input: unknown; marked: readonly string[] }) {
  const t = useMessages(approvingMessages);
  const isObject = input !== null && typeof input === "object" && !Array.isArray(input);
  const entries = isObject ? Object.entries(input) : null;
  const json = JSON.stringify(input, null, 2);
  return (
    <div className="mt-3">
      <p className="text-faint">{t("approving.input")}</p>
      {entries !== null && entries.length > 0 && (
        <dl className="mt-1 grid max-h-80 grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 overflow-y-auto rounded-md bg-sunken px-3 py-2 max-sm:grid-cols-1 max-sm:gap-y-0">
          {entries.map(([name, value]) => (
            <Fragment key={name}>
              <dt className="font-mono text-xs leading-(--text-sm--line-height) text-faint">
                <bdi>{revealHidden(name)}</bdi>
              </dt>
              <dd dir="auto" className="min-w-0 wrap-anywhere whitespace-pre-wrap max-sm:mb-1.5">
                <Marked text={typeof value === "string" ? value : JSON.stringify(value)} marked={marked} />
              </dd>
            </Fragment>
          ))}
        </dl>
      )}
      {marked.length > 0 && (
        <>
          <p className="mt-1.5 text-warning">{t("approving.marked")}</p>
          {/* A part that the lines contain in another spelling is highlighted nowhere else. */}
          <ul className="flex flex-wrap gap-x-3 gap-y-1">
            {marked.map((part) => (
              <li key={part} className="min-w-0 wrap-anywhere">
                <Marked text={part} marked={marked} />
              </li>
            ))}
          </ul>
        </>
      )}
      <Disclosure icon={<Icon name="fileText" size={16} />} label={t("approving.json")}>
        <pre
          dir="ltr"
          tabIndex={0}
          className="max-h-80 overflow-auto font-mono text-xs whitespace-pre-wrap wrap-anywhere"
        >
          <Marked text={json} marked={marked.map((part) => JSON.stringify(part).slice(1, -1))} />
        </pre>
      </Disclosure>
    </div>
  );
}

function Marked({ text, marked }: { text: string; marked: readonly string[] }) {
  return piecesOf(text, marked).map((piece, at) =>
    piece.marked ? (
      <mark
        key={at}
        className="rounded-sm bg-warning-wash font-semibold text-warning underline decoration-1 underline-offset-2"
      >
        {revealHidden(piece.text)}
      </mark>
    ) : (
      <Fragment key={at}>{revealHidden(piece.text)}</Fragment>
    ),
  );
}
