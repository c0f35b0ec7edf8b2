// The library: the files of the account, with a filter, and the uploads of this tab.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { fileKinds, filesQuery, fileSorts, isScanned, uniqueFiles, type FileFilter } from "../../api/files";
import { maxQuery } from "../../generated/limits";
import { Button } from "../../controls/button";
import { QuietSelect } from "../../controls/select-list";
import { Icon } from "../../controls/icon";
import { SearchField, useSearchedText } from "../../controls/search-field";
import { useMessages } from "../../messages/localization";
import { FileList } from "./file-list";
import { PageTitle } from "../../controls/page-title";
import { UploadButton, UploadList } from "./upload-controls";
import { fileMessages } from "../../messages/files";

const everything: Omit<FileFilter, "query"> = { kind: "all", sort: "newest" };

export function LibraryPage() {
  const t = useMessages(fileMessages);
  const heading = useRef<HTMLHeadingElement>(null);
  const [filter, setFilter] = useState(everything);
  const [typed, setTyped] = useState("");
  useEffect(() => heading.current?.focus(), []);
  const query = useSearchedText(typed);
  const clear = () => {
    setTyped("");
    setFilter((before) => ({ ...everything, sort: before.sort }));
  };
  return (
    <div className="min-h-0 grow overflow-y-auto short:overflow-visible">
      <PageTitle name={t("library.title")} />
      <div className="mx-auto flex w-full max-w-(--width-prose) flex-col gap-4 px-5 pt-4 pb-24">
        <div className="flex flex-wrap items-center justify-between gap-3">
          <h1 ref={heading} tabIndex={-1} className="text-xl font-semibold outline-none">
            {t("library.title")}
          </h1>
          <UploadButton project={null} />
        </div>
        <UploadList />
        <div role="search" className="flex flex-wrap items-center gap-x-1 gap-y-2">
          <SearchField label={t("library.search")} value={typed} onChange={setTyped} maxLength={maxQuery} />
          <QuietSelect
            icon="file"
            label={t("library.kind")}
            value={filter.kind}
            onChange={(kind) => setFilter({ ...filter, kind })}
            options={(["all", ...fileKinds] as const).map((kind) => ({
              value: kind,
              label: t(`library.kind.${kind}`),
            }))}
          />
          <QuietSelect
            icon="bars"
            label={t("library.sort")}
            value={filter.sort}
            onChange={(sort) => setFilter({ ...filter, sort })}
            options={fileSorts.map((sort) => ({ value: sort, label: t(`library.sort.${sort}`) }))}
          />
        </div>
        <Files filter={{ ...filter, query }} onClear={clear} />
      </div>
    </div>
  );
}

function Files({ filter, onClear }: { filter: FileFilter; onClear: () => void }) {
  const t = useMessages(fileMessages);
  const query = useInfiniteQuery(filesQuery(filter));
  const { data, isError, refetch } = query;
  if (isError && data === undefined)
    return (
      <div role="alert" className="py-8 text-center text-sm">
        <p>{t("library.not_loaded")}</p>
        <Button className="mt-4" icon="retry" onClick={() => void refetch()}>
          {t("pages.retry")}
        </Button>
      </div>
    );
  if (data === undefined) return null;
  const files = uniqueFiles(data.pages);
  return (
    <>
      {files.length > 0 ? (
        <FileList files={files} {...query} />
      ) : filter.query === "" && filter.kind === "all" ? (
        <div className="flex flex-col items-center gap-1 rounded-lg border border-dashed border-edge px-6 py-12 text-center">
          <p className="font-medium">{t("library.empty")}</p>
          <p className="text-sm text-soft">{t("library.empty_hint")}</p>
        </div>
      ) : (
        <div className="flex flex-col items-center gap-3 py-10 text-center">
          <p role="status">{t("library.none")}</p>
          <Button onClick={onClear}>{t("library.clear")}</Button>
        </div>
      )}
      {files.some((file) => !isScanned(file)) && (
        <p className="flex items-center gap-2 text-sm text-soft">
          <Icon name="warning" size={16} />
          {t("library.unprotected")}
        </p>
      )}
    </>
  );
}
