// A dialog with the files of the library, each with a button that adds it to a message or to a project.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { filesQuery, uniqueFiles, type StoredFile } from "../../api/files";
import { noticeSignOut } from "../../api/session-state";
import { maxQuery } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { FilePicture } from "../../controls/file-picture";
import { SearchField, useSearchedText } from "../../controls/search-field";
import { ShowMore } from "../../controls/show-more";
import { useMessages } from "../../messages/localization";
import { fileMessages } from "../../messages/files";

interface ChooseFilesProps {
  title: string;
  isAdded: (file: StoredFile) => boolean;
  add: (file: StoredFile) => unknown;
  onClose: () => void;
}

export function ChooseFilesDialog({ title, isAdded, add, onClose }: ChooseFilesProps) {
  const t = useMessages(fileMessages);
  const [typed, setTyped] = useState("");
  const [failed, setFailed] = useState(false);
  const query = useSearchedText(typed);
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } =
    useInfiniteQuery(filesQuery({ query, kind: "all", sort: "newest" }));
  const files = uniqueFiles(data?.pages ?? []);
  const addOne = async (file: StoredFile) => {
    setFailed(false);
    try {
      await add(file);
    } catch (refusal) {
      noticeSignOut(refusal);
      setFailed(true);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <SearchField label={t("library.search")} value={typed} onChange={setTyped} maxLength={maxQuery} />
      <ul aria-label={t("library.files")} className="flex max-h-80 flex-col overflow-y-auto">
        {files.map((file) => {
          const added = isAdded(file);
          return (
            <li key={file.file_id} className="flex min-h-11 items-center gap-3 text-sm">
              <FilePicture file={file} size={36} />
              <span dir="auto" className="min-w-0 grow truncate text-as-parent">
                {file.filename}
              </span>
              <Button
                icon={added ? "check" : "add"}
                className="me-1 aria-disabled:text-faint"
                aria-disabled={added}
                onClick={() => !added && void addOne(file)}
              >
                {t(added ? "library.project.added" : "library.project.add_one")}
                <span className="sr-only">{file.filename}</span>
              </Button>
            </li>
          );
        })}
      </ul>
      {isError && data === undefined && (
        <Button icon="retry" className="w-fit" onClick={() => void refetch()}>
          {t("library.not_loaded")}
        </Button>
      )}
      {data !== undefined && files.length === 0 && (
        <p className="text-sm text-soft">{t(query === "" ? "library.empty" : "library.none")}</p>
      )}
      <ShowMore
        label={t("pages.archive.more")}
        {...{ hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage }}
      />
      {failed && (
        <p role="alert" className="text-sm text-danger">
          {t("pages.projects.failed")}
        </p>
      )}
    </Dialog>
  );
}
