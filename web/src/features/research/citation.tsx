// A number of a report, with a card that says what its source says.
import { useQuery } from "@tanstack/react-query";
import { NotLoaded } from "../../controls/not-loaded";
import { useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { CitationCard } from "../../parts/citation-card";
import type { CitationProps } from "../../parts/cited";
import { reportQuery, sourcesQuery } from "./queries";
import { SourceContent } from "./source";

export function Citation(props: CitationProps) {
  const { number } = props;
  const t = useMessages(researchMessages);
  return (
    <CitationCard number={number} label={t("research.citation", { number })}>
      <Source {...props} />
    </CitationCard>
  );
}

function Source({ number, conversation, report }: CitationProps) {
  const t = useMessages(researchMessages);
  const task = useQuery(reportQuery(conversation, report));
  const id = task.data?.task_id;
  const sources = useQuery({ ...sourcesQuery(id ?? ""), enabled: id !== undefined });
  if (task.isError || sources.isError)
    return (
      <NotLoaded again={() => Promise.all([task.refetch(), sources.refetch()])}>{t("research.not_loaded")}</NotLoaded>
    );
  if (task.data === null) return <p className="text-soft">{t("research.citation.unknown")}</p>;
  if (sources.data === undefined) return <p role="status">{t("research.loading")}</p>;
  const source = sources.data.find((one) => one.number === number);
  return source === undefined ? (
    <p className="text-soft">{t("research.citation.unknown")}</p>
  ) : (
    <SourceContent source={source} />
  );
}
