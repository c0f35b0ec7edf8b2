// Settings: the imports of the account, each with its progress and its report. An open one can be cancelled. The service
// keeps the others.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import {
  cancelImport,
  importsQuery,
  isOpen,
  openImportQuery,
  useUpload,
  type Import,
  type ImportEntry,
} from "./imports";
import { refetchInAllTabs } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { ProgressBar } from "../../controls/progress-bar";
import { ShowMore } from "../../controls/show-more";
import { settingsMessages, type SettingsMessageKey, type SettingsText } from "../../messages/settings";
import { useLocalization, useMessages } from "../../messages/localization";
import { Disclosure } from "../../parts/disclosure";
import { byteSize } from "../../messages/byte-size";
import { FormError } from "../../controls/form-error";

/** How many entries of a report are listed at first, and how many more by each press of the button. */
const listedEntries = 20;

const sources = {
  turnstone: "Turnstone",
  chatgpt: "ChatGPT",
  claude: "Claude",
  openwebui: "Open WebUI",
  librechat: "LibreChat",
  deepseek: "DeepSeek",
  gemini: "Gemini",
} as const;

export function ImportList() {
  const t = useMessages(settingsMessages);
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(importsQuery);
  const uploading = useUpload(({ current }) => current !== null);
  const uploaded = useUpload(({ outcome }) => outcome?.importID ?? null);
  const [announced, setAnnounced] = useState("");
  const [failed, setFailed] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  /** The imports whose end is announced. */
  const awaited = useRef(new Set<string>());
  useEffect(() => {
    if (uploaded !== null) awaited.current.add(uploaded);
  }, [uploaded]);
  useEffect(() => {
    for (const one of data?.pages.flatMap((page) => page.data) ?? []) {
      if (isOpen(one)) awaited.current.add(one.import_id);
      else if (awaited.current.delete(one.import_id) && one.state !== "cancelled")
        setAnnounced([stateOf(one, t), ...(one.state === "failed" ? [] : countsOf(one, t))].join(". "));
    }
  }, [data, uploaded]);
  if (isError && data === undefined)
    return (
      <Button icon="retry" className="mb-3 w-fit" onClick={() => void refetch()}>
        {t("settings.imports.not_loaded")}
      </Button>
    );
  // An import that began between the loading of two pages may be on both. The upload of this tab has its own progress.
  const imports = [
    ...new Map(data?.pages.flatMap((page) => page.data).map((one) => [one.import_id, one])).values(),
  ].filter(({ state }) => !uploading || state !== "receiving");
  const cancel = async (one: Import) => {
    list.current?.focus(); // the pressed button will be removed
    setFailed(false);
    try {
      await cancelImport(one.import_id);
      setAnnounced(t("settings.imports.cancelled"));
    } catch (refusal) {
      noticeSignOut(refusal);
      setFailed(true);
    }
  };
  return (
    <>
      {imports.length > 0 && (
        <ul
          ref={list}
          tabIndex={-1}
          aria-label={t("settings.imports")}
          className="divide-y divide-line border-t border-line outline-none"
        >
          {imports.map((one) => (
            <Row key={one.import_id} listed={one} onCancel={() => void cancel(one)} />
          ))}
        </ul>
      )}
      <ShowMore label={t("pages.archive.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
      <div role="status" className={failed ? "pb-3 text-sm" : "sr-only"}>
        {failed ? <FormError>{t("settings.imports.not_cancelled")}</FormError> : announced}
      </div>
    </>
  );
}

interface RowProps {
  listed: Import;
  onCancel: () => void;
}

function Row({ listed, onCancel }: RowProps) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const { data: polled } = useQuery({ ...openImportQuery(listed.import_id), enabled: isOpen(listed) });
  const one = isOpen(listed) ? (polled ?? listed) : listed;
  const ended = isOpen(listed) && !isOpen(one);
  useEffect(() => {
    if (ended) void refetchInAllTabs("imports");
  }, [ended]);
  const when = intl.formatDate(one.created_at, { dateStyle: "medium", timeStyle: "short" });
  const failed = one.state === "failed";
  return (
    <li className="flex flex-col gap-2 py-3 text-sm">
      <div className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <p className="font-medium">
            {one.source === null
              ? t("settings.imports.name")
              : t("settings.imports.name.source", { source: sources[one.source] })}
          </p>
          <p className="flex flex-wrap gap-x-3 text-soft">
            <span>{when}</span>
            {one.size > 0 && <span>{byteSize(intl, one.size)}</span>}
          </p>
          <p className={failed ? "text-danger" : "text-soft"}>{stateOf(one, t)}</p>
          {!failed && one.state !== "receiving" && one.state !== "queued" && (
            <p className="flex flex-wrap gap-x-3 text-soft">
              {countsOf(one, t).map((text) => (
                <span key={text}>{text}</span>
              ))}
            </p>
          )}
        </div>
        {isOpen(one) && (
          <Button className="shrink-0" aria-label={t("settings.imports.cancel_one", { when })} onClick={onCancel}>
            {t("settings.imports.cancel")}
          </Button>
        )}
      </div>
      {isOpen(one) && (
        <ProgressBar
          label={t("settings.imports.progress")}
          value={one.state === "running" ? one.read_bytes / Math.max(1, one.size) : null}
        />
      )}
      {one.report.entries.length > 0 && <Report report={one.report} />}
    </li>
  );
}

function stateOf({ state, size, read_bytes }: Import, t: SettingsText): string {
  if (state !== "failed") return t(`settings.imports.state.${state}`);
  // An import that fails after its upload has read the whole file.
  return t(`settings.imports.state.${size > 0 && read_bytes === size ? "nothing_found" : "upload_failed"}`);
}

function countsOf({ imported, updated, messages, projects, files, skipped }: Import, t: SettingsText): string[] {
  return [
    t("settings.imports.imported", { count: imported }),
    ...(updated > 0 ? [t("settings.imports.updated", { count: updated })] : []),
    ...(messages > 0 ? [t("settings.imports.messages", { count: messages })] : []),
    ...(projects > 0 ? [t("settings.imports.projects", { count: projects })] : []),
    ...(files > 0 ? [t("settings.imports.files", { count: files })] : []),
    ...(skipped > 0 ? [t("settings.imports.skipped", { count: skipped })] : []),
  ];
}

/** The key of the text for a reason, which may be one that only a later version of the service knows. */
function reasonKey(reason: string): SettingsMessageKey {
  const key = `settings.report.reason.${reason}`;
  return key in settingsMessages["en"]! ? (key as SettingsMessageKey) : "settings.report.reason.other";
}

function Report({ report }: { report: Import["report"] }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const [listed, setListed] = useState(listedEntries);
  const { reasons, entries, more_entries } = report;
  return (
    <Disclosure icon={<Icon name="bars" size={16} />} label={t("settings.report")}>
      <dl className="grid grid-cols-[1fr_auto] gap-x-6 gap-y-1">
        {Object.entries(reasons).map(([reason, count]) => (
          <div key={reason} className="contents">
            <dt>{t(reasonKey(reason))}</dt>
            <dd className="text-end tabular-nums">{intl.formatNumber(count)}</dd>
          </div>
        ))}
      </dl>
      <ul className="mt-3 flex flex-col gap-2">
        {entries.slice(0, listed).map((entry, index) => (
          <Entry key={index} entry={entry} />
        ))}
      </ul>
      {listed < entries.length && (
        <Button className="mt-3 w-fit" onClick={() => setListed(listed + listedEntries)}>
          {t("pages.archive.more")}
        </Button>
      )}
      {listed >= entries.length && more_entries > 0 && (
        <p className="mt-3 text-soft">{t("settings.report.more_entries", { count: more_entries })}</p>
      )}
    </Disclosure>
  );
}

/** An occurrence of a reason: the conversation or the file, and what the service adds about it. */
function Entry({ entry }: { entry: ImportEntry }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const title = entry.title || (entry.conversation_id === undefined ? "" : t("pages.untitled"));
  return (
    <li className="flex flex-col">
      {entry.conversation_id !== undefined ? (
        <Link
          to="/c/$conversation"
          params={{ conversation: entry.conversation_id }}
          dir="auto"
          className="block min-h-6 truncate font-medium text-as-parent hover:underline"
        >
          {title}
        </Link>
      ) : (
        title !== "" && (
          <span dir="auto" className="font-medium wrap-anywhere text-as-parent">
            {title}
          </span>
        )
      )}
      <span className="text-soft">
        {t(reasonKey(entry.reason))}
        {entry.count > 1 && ` (${intl.formatNumber(entry.count)})`}
      </span>
      {entry.detail !== undefined && (
        // The service writes it in English.
        <span lang="en" dir="ltr" className="wrap-anywhere text-faint">
          {entry.detail}
        </span>
      )}
    </li>
  );
}
