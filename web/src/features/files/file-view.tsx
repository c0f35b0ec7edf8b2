// A dialog with the content of a file: a picture, or the text with the part that a citation names.
import { infiniteQueryOptions, queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, useEffect, useRef } from "react";
import { api, body, Refusal, type Schemas } from "../../api/client";
import { closeFileView, useFileView, viewFile, type ViewedFile } from "../../controls/viewed-file";
import { contentPath, thumbnailPath } from "../../api/files";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { ShowMore } from "../../controls/show-more";
import { byteSize } from "../../messages/byte-size";
import { useLocalization, useMessages } from "../../messages/localization";
import { readingMessages } from "../../messages/reading";
import { addressOf } from "../../api/message-address";
import { readingNotes } from "./reading-notes";
import { piecesOf } from "./text-pieces";
import { fileMessages } from "../../messages/files";

type TextRange = Schemas["TextRange"];

const fileQuery = (file_id: string) =>
  queryOptions({
    queryKey: ["files", "one", file_id],
    queryFn: () => body(api.GET("/files/{file_id}", { params: { path: { file_id } } })),
    refetchOnMount: "always",
  });

/** The text of a file from an offset, range by range. It never changes. */
const textQuery = (file_id: string, start: number) =>
  infiniteQueryOptions({
    queryKey: ["file-text", file_id, start],
    staleTime: Infinity,
    initialPageParam: start,
    queryFn: ({ pageParam: offset }) =>
      body(api.GET("/files/{file_id}/text", { params: { path: { file_id }, query: { offset, limit: 32_768 } } })),
    getNextPageParam: (last: TextRange) => last.next_offset,
  });

/** What is known of the text of a file, with its first characters. */
const readQuery = (file_id: string) =>
  queryOptions({
    queryKey: ["file-text", file_id, "read"],
    staleTime: Infinity,
    queryFn: () =>
      body(api.GET("/files/{file_id}/text", { params: { path: { file_id }, query: { offset: 0, limit: 256 } } })),
  });

/** The types of pictures that every browser shows. */
const shownPictures = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];

export function FileView() {
  const viewed = useFileView(({ file }) => file);
  return viewed === null ? null : <View key={viewed.id} viewed={viewed} />;
}

function View({ viewed }: { viewed: ViewedFile }) {
  const { intl } = useLocalization();
  const t = useMessages(fileMessages);
  const { data: file, error, refetch } = useQuery(fileQuery(viewed.id));
  const missing = error instanceof Refusal && error.status === 404;
  return (
    <Dialog
      wide
      title={file?.filename ?? viewed.name}
      description={
        file === undefined
          ? undefined
          : [byteSize(intl, file.size), file.pages !== null && t("file.pages", { count: file.pages })]
              .filter(Boolean)
              .join(" · ")
      }
      onClose={closeFileView}
    >
      {error !== null && file === undefined && (
        <div className="flex items-center gap-3 text-sm">
          <p role="alert" className="text-danger">
            {t(missing ? "library.gone" : "file.not_loaded")}
          </p>
          {!missing && <Button onClick={() => void refetch()}>{t("pages.retry")}</Button>}
        </div>
      )}
      {file !== undefined && (
        <>
          {file.text_state !== "pending" && <Notes id={file.file_id} />}
          {shownPictures.includes(file.media_type) ? (
            <img src={contentPath(file)} alt={file.filename} className="max-h-[60dvh] self-center object-contain" />
          ) : file.text_state === "done" ? (
            <>
              {file.has_thumbnail && viewed.cited === undefined && (
                <img
                  src={thumbnailPath(file)}
                  alt={t("file.first_page")}
                  className="max-h-64 self-center rounded-sm border border-line object-contain"
                />
              )}
              <Text viewed={viewed} />
            </>
          ) : (
            <>
              {file.has_thumbnail && (
                <img
                  src={thumbnailPath(file)}
                  alt={t("file.first_page")}
                  className="max-h-64 self-center rounded-sm border border-line object-contain"
                />
              )}
              <p className="text-sm text-soft">{t(file.text_state === "pending" ? "file.reading" : "file.no_text")}</p>
            </>
          )}
          <References list={file.references} />
          <a
            href={contentPath(file)}
            download=""
            className="inline-flex min-h-9 items-center self-end rounded-md px-3 text-sm font-medium text-accent hover:bg-hover"
          >
            {t("library.download")}
          </a>
        </>
      )}
    </Dialog>
  );
}

/** Says why a file has no text, or what of it was left out or guessed. */
function Notes({ id }: { id: string }) {
  const t = useMessages(readingMessages);
  const { data } = useQuery(readQuery(id));
  const notes = data === undefined ? [] : readingNotes(t, data);
  if (notes.length === 0) return null;
  return (
    <ul aria-label={t("file.notes")} className="flex flex-col gap-1 text-sm text-soft">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

/** The conversations that have the file, each with a link to its newest message that does. */
function References({ list }: { list: Schemas["FileDetails"]["references"] }) {
  const t = useMessages(fileMessages);
  const newest = list.filter((one, at) => list.findIndex((of) => of.conversation_id === one.conversation_id) === at);
  if (newest.length === 0) return null;
  return (
    <div className="text-sm">
      <p className="text-xs text-faint">{t("file.used_in")}</p>
      <ul className="mt-1 flex flex-wrap gap-x-4 gap-y-1">
        {newest.map(({ conversation_id, message_id, branch_id, title }) => (
          <li key={conversation_id} className="max-w-full truncate">
            <Link
              to="/c/$conversation"
              params={{ conversation: conversation_id }}
              hash={addressOf(message_id, branch_id)}
              onClick={closeFileView}
              className="text-accent underline decoration-1 underline-offset-2"
            >
              <bdi>{title || t("pages.untitled")}</bdi>
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Text({ viewed }: { viewed: ViewedFile }) {
  const t = useMessages(fileMessages);
  const { id, cited } = viewed;
  const start = cited?.offset ?? 0;
  const { data, error, isFetchingNextPage, hasNextPage, isFetchNextPageError, fetchNextPage, refetch } =
    useInfiniteQuery(textQuery(id, start));
  const region = useRef<HTMLDivElement>(null);
  const mark = useRef<HTMLElement>(null);
  const loaded = data !== undefined;
  useEffect(() => {
    mark.current?.scrollIntoView({ block: "nearest" });
  }, [loaded]);
  return (
    <div className="flex flex-col gap-2">
      {start > 0 && (
        <Button
          className="self-start"
          onClick={() => {
            region.current?.focus(); // the pressed button is removed
            viewFile({ id, name: viewed.name });
          }}
        >
          {t("file.from_start")}
        </Button>
      )}
      <div
        ref={region}
        tabIndex={0}
        role="region"
        aria-label={t("file.text")}
        aria-busy={!loaded && error === null}
        className="max-h-[55dvh] min-h-16 overflow-y-auto rounded-md border border-line bg-sunken px-4 py-3 text-sm"
      >
        {data === undefined && error !== null && (
          <div className="flex flex-wrap items-center gap-3">
            <p role="alert" className="text-danger">
              {t("file.not_loaded")}
            </p>
            <Button onClick={() => void refetch()}>{t("pages.retry")}</Button>
          </div>
        )}
        {piecesOf(data?.pages ?? [], cited).map((piece, at) => (
          <Fragment key={at}>
            {piece.heading !== null && (
              <p className="mt-3 mb-1 text-xs font-medium text-faint first:mt-0">
                {t(`file.${piece.heading.kind}`, { number: piece.heading.page })}
                {piece.heading.title !== undefined && (
                  <>
                    {" "}
                    <bdi>{piece.heading.title}</bdi>
                  </>
                )}
              </p>
            )}
            {piece.cited ? (
              <mark ref={mark} dir="auto" className="block bg-accent-wash wrap-anywhere whitespace-pre-wrap text-ink">
                {piece.text}
              </mark>
            ) : (
              <p dir="auto" className="wrap-anywhere whitespace-pre-wrap">
                {piece.text}
              </p>
            )}
          </Fragment>
        ))}
        {loaded && (
          <ShowMore
            label={t("pages.archive.more")}
            {...{ isFetchingNextPage, hasNextPage, isFetchNextPageError, fetchNextPage }}
          />
        )}
      </div>
    </div>
  );
}
