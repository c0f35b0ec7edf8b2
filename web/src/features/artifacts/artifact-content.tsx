// The content of a version by its kind. Pages, pictures and diagrams run in the frame of the sandbox origin.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Button } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { artifactMessages } from "../../messages/artifact-panel";
import { Code } from "../../parts/code";
import { rowsOf } from "../../parts/csv";
import { ReportContext } from "../../parts/cited";
import { Markdown } from "../../parts/markdown";
import { frameAttributes, runArtifact, sandboxOrigin } from "../../sandbox/sandbox";
import { Citation, ReportDetails, reportQuery } from "../research";
import { usePrint } from "./print";
import type { Artifact } from "./queries";

interface ContentProps {
  artifact: Artifact;
  content: string;
  /** Whether the source is shown instead of what it makes. */
  source: boolean;
  /** Asks the model to remove an error. */
  onFix: (error: string) => void;
}

export function ArtifactContent({ artifact, content, source, onFix }: ContentProps) {
  const t = useMessages(artifactMessages);
  const { kind, title } = artifact;
  const runs = kind === "html" || kind === "svg" || kind === "diagram";
  const shown = source || (runs && sandboxOrigin() === "") ? "code" : kind;
  switch (shown) {
    case "document":
      return (
        <Scrolling>
          <Document artifact={artifact} content={content} />
        </Scrolling>
      );
    case "table":
      return (
        <Scrolling>
          <Table csv={content} />
        </Scrolling>
      );
    case "code":
      return (
        <Scrolling>
          {!source && runs && <p className="text-sm text-soft">{t("artifacts.frame.none")}</p>}
          <Code code={content} language={languageOf(artifact)} filename={title} streaming={false} folds={false} />
        </Scrolling>
      );
    default:
      return <Frame kind={shown} title={title} content={content} onFix={onFix} />;
  }
}

/** A document, which may be the report of a research task. */
function Document({
  artifact: { artifact_id: report, conversation_id: conversation },
  content,
}: {
  artifact: Artifact;
  content: string;
}) {
  const element = useRef<HTMLDivElement>(null);
  usePrint(element);
  const isReport = useQuery(reportQuery(conversation, report)).data != null;
  const context = useMemo(
    () => (isReport ? { conversation, report, Citation } : null),
    [isReport, conversation, report],
  );
  return (
    <>
      <div ref={element}>
        <ReportContext value={context}>
          <Markdown text={content} streaming={false} />
        </ReportContext>
      </div>
      {isReport && <ReportDetails conversation={conversation} report={report} />}
    </>
  );
}

const sourceLanguages = { document: "markdown", html: "html", svg: "xml", table: "", diagram: "", code: "" } as const;

const languageOf = ({ kind, language }: Artifact): string => language ?? sourceLanguages[kind];

function Scrolling({ children }: { children: ReactNode }) {
  return <div className="min-h-0 grow overflow-y-auto px-4 py-2 short:shrink-0">{children}</div>;
}

/** The most rows of a table that are shown. */
const maxRows = 1_000;

function Table({ csv }: { csv: string }) {
  const t = useMessages(artifactMessages);
  const [head = [], ...rows] = rowsOf(csv, maxRows + 2);
  return (
    <div className="prose">
      <div tabIndex={0} role="group" aria-label={t("transcript.table")} className="my-2 overflow-x-auto">
        <table>
          <thead>
            <tr>
              {head.map((cell, at) => (
                <th key={at} scope="col" dir="auto">
                  {cell}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, maxRows).map((row, at) => (
              <tr key={at}>
                {row.map((cell, column) => (
                  <td key={column} dir="auto">
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > maxRows && <p className="text-sm text-faint">{t("artifacts.table.cut", { count: maxRows })}</p>}
    </div>
  );
}

/** The longest error in characters that is shown: what a frame reports is not trusted. */
const maxError = 1_000;

interface FrameProps {
  kind: "html" | "svg" | "diagram";
  title: string;
  content: string;
  onFix: (error: string) => void;
}

/** Runs the artifact, and shows the first error that it reports, or that it has left its frame. */
function Frame({ kind, title, content, onFix }: FrameProps) {
  const t = useMessages(artifactMessages);
  const frame = useRef<HTMLIFrameElement>(null);
  // A frame runs an artifact once.
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [left, setLeft] = useState(false);
  useEffect(() => {
    setError(null);
    setLeft(false);
    return runArtifact(frame.current!, { kind, content }, (report) => {
      if (report.type === "left") setLeft(true);
      if (report.type !== "error") return;
      const text = report.message.slice(0, maxError);
      const found = report.line > 0 ? t("artifacts.frame.line", { error: text, line: report.line }) : text;
      setError((first) => first ?? found);
    });
  }, [kind, content, attempt, t]);
  const again = (
    <Button look="quiet" icon="retry" className="text-danger" onClick={() => setAttempt(attempt + 1)}>
      {t("artifacts.frame.again")}
    </Button>
  );
  return (
    <>
      {left && (
        <div role="alert" className="shrink-0 border-b border-line bg-danger-wash px-4 py-2 text-sm text-danger">
          <p className="flex items-center gap-2 font-medium">
            <Icon name="warning" size={16} />
            {t("artifacts.frame.left")}
          </p>
          <p className="mt-2">{again}</p>
        </div>
      )}
      {error !== null && !left && (
        <div role="alert" className="shrink-0 border-b border-line bg-danger-wash px-4 py-2 text-sm text-danger">
          <p className="flex items-center gap-2 font-medium">
            <Icon name="warning" size={16} />
            {t("artifacts.frame.error")}
          </p>
          <p dir="auto" className="mt-1 max-h-24 overflow-y-auto font-mono text-xs wrap-anywhere whitespace-pre-wrap">
            {error}
          </p>
          <p className="mt-2 flex gap-2">
            <Button icon="spark" onClick={() => onFix(error)}>
              {t("artifacts.fix")}
            </Button>
            {again}
          </p>
        </div>
      )}
      <iframe
        key={attempt}
        ref={frame}
        title={t("artifacts.frame", { title })}
        {...frameAttributes}
        className="min-h-0 w-full grow border-0 short:min-h-60 short:shrink-0"
      />
    </>
  );
}
