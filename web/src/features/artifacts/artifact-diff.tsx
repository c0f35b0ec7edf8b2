// What differs between two versions, line by line.
import { useQuery } from "@tanstack/react-query";
import { NotLoaded } from "../../controls/not-loaded";
import { useMessages } from "../../messages/localization";
import { artifactMessages } from "../../messages/artifact-panel";
import { diffQuery, type ArtifactDiff as Diff } from "./queries";

export function ArtifactDiff({ artifact, from, to }: { artifact: string; from: number; to: number }) {
  const t = useMessages(artifactMessages);
  const { data: diff, isError, refetch } = useQuery(diffQuery(artifact, from, to));
  if (isError) return <NotLoaded again={refetch}>{t("artifacts.not_loaded")}</NotLoaded>;
  if (diff === undefined)
    return (
      <p role="status" className="py-2 text-sm text-soft">
        {t("pages.list.loading")}
      </p>
    );
  if (diff.hunks.length === 0) return <p className="py-2 text-sm text-soft">{t("artifacts.changes.none")}</p>;
  return (
    <>
      <p className="py-2 text-sm text-soft">
        {t("artifacts.changes.count", { added: diff.added, removed: diff.removed })}
      </p>
      <div
        tabIndex={0}
        role="group"
        aria-label={t("artifacts.changes")}
        dir="ltr"
        className="shrink-0 overflow-x-auto rounded-md bg-sunken py-2 font-mono text-sm"
      >
        <div className="w-fit min-w-full">
          {diff.hunks.map((hunk) => (
            <Hunk key={hunk.to_line} hunk={hunk} />
          ))}
        </div>
      </div>
      {diff.truncated && <p className="mt-2 text-sm text-faint">{t("artifacts.changes.cut")}</p>}
    </>
  );
}

const marks = { equal: "", added: "+", removed: "−" } as const;
const inks = { equal: "text-soft", added: "bg-accent-wash text-ink", removed: "bg-danger-wash text-ink" } as const;

function Hunk({ hunk: { from_line, to_line, lines } }: { hunk: Diff["hunks"][number] }) {
  const t = useMessages(artifactMessages);
  return (
    <>
      <p className="px-3 text-xs text-faint">{`−${from_line} +${to_line}`}</p>
      {lines.map(({ change, text }, at) => {
        const Line = change === "added" ? "ins" : change === "removed" ? "del" : "p";
        return (
          <Line
            key={at}
            data-mark={marks[change]}
            className={`block px-3 whitespace-pre no-underline before:inline-block before:w-4 before:content-[attr(data-mark)] ${inks[change]}`}
          >
            {change !== "equal" && <span className="sr-only">{t(`artifacts.line.${change}`)} </span>}
            {text}
          </Line>
        );
      })}
    </>
  );
}
