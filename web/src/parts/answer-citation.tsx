// A citation of an answer: a number, and a card with the page of a file and what it says there, or with a web page.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { Button } from "../controls/button";
import { NotLoaded } from "../controls/not-loaded";
import { viewFile } from "../controls/viewed-file";
import type { Citation } from "../generated/events";
import { citingMessages } from "../messages/citing";
import { useMessages } from "../messages/localization";
import { CitationCard } from "./citation-card";
import { webURL } from "./links";
import { hostOf } from "./sources";

/** How much of the cited part is quoted, in bytes. */
const maxQuote = 600;

/** The cited part of a file, which never changes. */
const quoteQuery = (file_id: string, offset: number, length: number) =>
  queryOptions({
    queryKey: ["file-text", file_id, "quote", offset, length],
    staleTime: Infinity,
    queryFn: () =>
      body(
        api.GET("/files/{file_id}/text", {
          params: { path: { file_id }, query: { offset, limit: Math.max(4, Math.min(length, maxQuote)) } },
        }),
      ),
  });

export function AnswerCitation({ citation }: { citation: Citation }) {
  const t = useMessages(citingMessages);
  const { index: number, title, file_id } = citation;
  return (
    <CitationCard number={number} label={t("citation.name", { number, title })}>
      {file_id === undefined ? <Page citation={citation} /> : <Passage citation={citation} id={file_id} />}
    </CitationCard>
  );
}

function Page({ citation: { title, url } }: { citation: Citation }) {
  const address = webURL(url);
  if (address === undefined) return <bdi className="font-medium wrap-anywhere">{title}</bdi>;
  return (
    <>
      <a
        href={address}
        target="_blank"
        rel="noopener noreferrer nofollow"
        className="font-medium wrap-anywhere text-accent underline decoration-1 underline-offset-2"
      >
        <bdi>{title || address}</bdi>
      </a>
      <p dir="ltr" title={address} className="text-xs wrap-anywhere text-faint rtl:text-end">
        {hostOf(address)}
      </p>
    </>
  );
}

function Passage({ citation, id }: { citation: Citation; id: string }) {
  const t = useMessages(citingMessages);
  const { title, kind, page, offset = 0, length = 0 } = citation;
  const { data, isError, refetch } = useQuery({ ...quoteQuery(id, offset, length), enabled: length > 0 });
  const quote = data?.text.trim() ?? "";
  return (
    <div className="flex flex-col gap-2">
      <div>
        <p className="font-medium wrap-anywhere">
          <bdi>{title}</bdi>
        </p>
        {kind !== undefined && page !== undefined && (
          <p className="text-xs text-faint">{t(`file.${kind}`, { number: page })}</p>
        )}
      </div>
      {isError && <NotLoaded again={refetch}>{t("citation.not_loaded")}</NotLoaded>}
      {quote !== "" && (
        <blockquote dir="auto" className="border-s-2 border-edge ps-3 wrap-anywhere whitespace-pre-wrap">
          {quote}
          {length > maxQuote && "…"}
        </blockquote>
      )}
      <Button
        look="quiet"
        icon="fileText"
        className="-ms-2 w-fit"
        onClick={() => viewFile({ id, name: title, ...(length > 0 ? { cited: { offset, length } } : {}) })}
      >
        {t("citation.open")}
      </Button>
    </div>
  );
}
