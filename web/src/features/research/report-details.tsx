// What the checks of a report found, and its sources with their excerpts.
import { useQuery } from "@tanstack/react-query";
import { Icon } from "../../controls/icon";
import { NotLoaded } from "../../controls/not-loaded";
import { useLocalization, useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { Disclosure } from "../../parts/disclosure";
import { formatDuration } from "../../parts/elapsed";
import { reportQuery, sourcesQuery } from "./queries";
import { SourceContent } from "./source";

interface DetailsProps {
  conversation: string;
  /** The identifier of the message or of the artifact that is the report. */
  report: string;
}

export function ReportDetails({ conversation, report }: DetailsProps) {
  const t = useMessages(researchMessages);
  const localization = useLocalization();
  const { data: task } = useQuery(reportQuery(conversation, report));
  if (task == null) return null;
  const { checks, spent, progress, question } = task;
  return (
    <section aria-label={t("research.report", { question })} className="mt-2 text-sm">
      {checks !== null && (
        <p className="flex items-start gap-2 text-soft">
          <span className={`mt-0.5 ${checks.unsupported === 0 ? "text-success" : "text-warning"}`}>
            <Icon name={checks.unsupported === 0 ? "check" : "warning"} size={16} />
          </span>
          <span>
            {t("research.checks", { supported: checks.supported, factual: checks.factual })}
            {checks.unsupported > 0 && <> {t("research.checks.unsupported", { count: checks.unsupported })}</>}
          </span>
        </p>
      )}
      <p className="mt-0.5 text-xs text-faint tabular-nums">
        {t("research.summary", {
          pages: spent.pages,
          tokens: spent.tokens,
          time: formatDuration(localization, spent.seconds),
        })}
      </p>
      <Disclosure
        icon={<Icon name="research" size={16} />}
        label={t("research.report.sources", { count: progress.sources_kept })}
      >
        <Sources task={task.task_id} />
      </Disclosure>
    </section>
  );
}

function Sources({ task }: { task: string }) {
  const t = useMessages(researchMessages);
  const { data, isError, refetch } = useQuery(sourcesQuery(task));
  if (isError) return <NotLoaded again={refetch}>{t("research.not_loaded")}</NotLoaded>;
  if (data === undefined) return <p role="status">{t("research.loading")}</p>;
  const cited = data.filter(({ number }) => number !== null);
  const others = data.filter(({ number }) => number === null);
  return (
    <>
      <List sources={cited} />
      {others.length > 0 && (
        <>
          <p className="mt-4 font-medium">{t("research.report.uncited")}</p>
          <List sources={others} />
        </>
      )}
    </>
  );
}

function List({ sources }: { sources: Parameters<typeof SourceContent>[0]["source"][] }) {
  return (
    <ol className="flex flex-col gap-4 py-1">
      {sources.map((source) => (
        <li key={source.source_id}>
          <SourceContent source={source} hash />
        </li>
      ))}
    </ol>
  );
}
