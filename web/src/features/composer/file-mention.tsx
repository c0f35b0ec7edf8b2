// The list of files that opens when "@" is typed at the beginning of a word. The file that the user chooses becomes part of the
// message, and the word is removed from the text. The field keeps the focus. It stays a text field for screen readers, because
// the role combobox is not allowed on a field with several lines; aria-activedescendant names the active file.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useId, useRef, useState, type RefObject } from "react";
import { attach } from "../../api/attachments";
import { maxQuery, pickerQuery, type StoredFile } from "../../api/files";
import { conversationQuery, queryClient } from "../../api/queries";
import { Icon } from "../../controls/icon";
import { useSearchedText } from "../../controls/search-field";
import { useLocalization } from "../../messages/localization";
import { useDrafts } from "./page-drafts";
import { mentionAt, type Mention } from "./mention";

interface FileMentionProps {
  conversation: string;
  field: RefObject<HTMLTextAreaElement | null>;
}

export function FileMention({ conversation, field }: FileMentionProps) {
  const { t } = useLocalization();
  const id = useId();
  const { mention, close } = useMention(field);
  const found = useFoundFiles(conversation, mention?.query ?? null);
  const attached = useDrafts(({ byID }) => byID[conversation]?.files);
  const [moved, setMoved] = useState<{ to: number; in: string } | null>(null);
  // A changed text or list starts again with its first file.
  const list = found.files.map(({ file_id }) => file_id).join();
  const active = moved?.in === list ? moved.to : 0;
  const choose = ({ file_id, filename }: StoredFile) => {
    const area = field.current;
    if (area === null || mention === null) return;
    attach(conversation, [{ id: file_id, name: filename }]);
    area.setRangeText("", mention.start, mention.end, "end");
    area.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "deleteContentBackward" }));
  };
  /** Handles a key of the open list; false: the field handles it. */
  const press = (key: string): boolean => {
    const count = found.files.length;
    if (key === "Escape") close();
    else if ((key === "ArrowDown" || key === "ArrowUp") && count > 0)
      setMoved({ to: (active + (key === "ArrowDown" ? 1 : count - 1)) % count, in: list });
    else if (key === "Enter" || key === "Tab") {
      if (count > 0) choose(found.files[active]!);
      else return key === "Enter" && found.loading; // the message is not sent while the list is loading
    } else return false;
    return true;
  };
  useKeys(field, mention !== null, press);
  const option = (at: number) => `${id}-${at}`;
  const open = mention !== null;
  useDescription(field, open ? id : null, open && found.files.length > 0 ? option(active) : null);
  return (
    <>
      {open && (
        <div className="absolute inset-x-0 bottom-full z-30 mb-1.5 overflow-hidden rounded-md border border-line bg-raised shadow-float">
          <ul
            id={id}
            role="listbox"
            aria-label={t("composer.mention")}
            className="max-h-[min(40dvh,18rem)] overflow-y-auto p-1 empty:hidden"
          >
            {found.files.map((file, at) => (
              <li
                key={file.file_id}
                id={option(at)}
                role="option"
                aria-selected={at === active}
                onPointerDown={(event) => event.preventDefault()} // the field keeps the focus
                onPointerMove={() => at === active || setMoved({ to: at, in: list })}
                onClick={() => choose(file)}
                className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-sm px-2.5 text-sm select-none aria-selected:bg-hover pointer-coarse:min-h-11 forced-colors:aria-selected:outline-2"
              >
                <Icon name={file.kind === "image" ? "image" : "file"} size={16} />
                <span className="flex min-w-0 grow">
                  <bdi className="truncate">{file.filename}</bdi>
                </span>
                {attached?.includes(file.file_id) === true ? (
                  <span className="shrink-0 text-xs text-soft">{t("library.project.added")}</span>
                ) : (
                  found.isOfProject(file) && (
                    <span className="shrink-0 text-xs text-soft">{t("composer.mention.project")}</span>
                  )
                )}
              </li>
            ))}
          </ul>
          {found.files.length === 0 && (
            <p className="px-3.5 py-2.5 text-sm text-soft">
              {t(
                found.loading
                  ? "transcript.file.loading"
                  : found.failed
                    ? "composer.mention.failed"
                    : "composer.mention.none",
              )}
            </p>
          )}
        </div>
      )}
      <p role="status" className="sr-only">
        {open && !found.loading && t("composer.mention.count", { count: found.files.length })}
      </p>
    </>
  );
}

/** The word at the caret that names a file, from when it is typed until it is left, or closed with Escape. */
function useMention(field: RefObject<HTMLTextAreaElement | null>): { mention: Mention | null; close: () => void } {
  const [mention, setMention] = useState<Mention | null>(null);
  const closedAt = useRef<number | null>(null);
  const update = useEffectEvent((typed: boolean) => {
    const area = field.current;
    if (area === null || (!typed && mention === null)) return;
    const found = mentionAt(area.value, area.selectionStart, area.selectionEnd, maxQuery);
    if (found?.start !== closedAt.current) closedAt.current = null;
    const same = typed || found?.start === mention?.start;
    setMention(closedAt.current === null && same && document.activeElement === area ? found : null);
  });
  useEffect(() => {
    const area = field.current;
    if (area === null) return;
    const typed = () => update(true);
    const left = () => update(false);
    typed();
    area.addEventListener("input", typed);
    area.addEventListener("blur", left);
    document.addEventListener("selectionchange", left);
    return () => {
      area.removeEventListener("input", typed);
      area.removeEventListener("blur", left);
      document.removeEventListener("selectionchange", left);
    };
  }, [field]);
  const close = () => {
    closedAt.current = mention?.start ?? null;
    setMention(null);
  };
  return { mention, close };
}

const noFiles: readonly StoredFile[] = [];

/** The files whose names contain a text, those of the project of the conversation first; null: none are needed. */
function useFoundFiles(conversation: string, query: string | null) {
  const searched = useSearchedText(query ?? "");
  const { data, isError, isPending, isPlaceholderData, fetchStatus } = useQuery({
    ...pickerQuery(searched),
    enabled: query !== null,
  });
  const project = queryClient.getQueryData(conversationQuery(conversation).queryKey)?.project_id ?? null;
  const isOfProject = ({ project_ids }: StoredFile) => project !== null && project_ids.includes(project);
  // Until the files for the last key have arrived, those that match it are shown: Enter must not choose another one.
  const late = isPlaceholderData || searched !== query;
  const files = (query === null ? noFiles : (data?.data ?? noFiles)).filter(
    ({ filename }) => !late || filename.toLowerCase().includes((query ?? "").toLowerCase()),
  );
  return {
    files: [...files.filter(isOfProject), ...files.filter((file) => !isOfProject(file))],
    isOfProject,
    loading: !isError && fetchStatus !== "paused" && (isPending || late),
    failed: isError || fetchStatus === "paused",
  };
}

/** Handles the keys of the open list before the field does, except those of an input method. */
function useKeys(field: RefObject<HTMLTextAreaElement | null>, open: boolean, press: (key: string) => boolean): void {
  const handle = useEffectEvent((event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || !press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  useEffect(() => {
    const area = field.current;
    if (area === null || !open) return;
    const pressed = (event: KeyboardEvent) => handle(event);
    area.addEventListener("keydown", pressed);
    return () => area.removeEventListener("keydown", pressed);
  }, [field, open]);
}

/** Describes the list and its active file to screen readers, and keeps that file visible. */
function useDescription(
  field: RefObject<HTMLTextAreaElement | null>,
  list: string | null,
  active: string | null,
): void {
  useEffect(() => {
    const area = field.current;
    if (area === null || list === null) return;
    const attributes = {
      "aria-autocomplete": "list",
      "aria-haspopup": "listbox",
      "aria-controls": list,
      ...(active === null ? {} : { "aria-activedescendant": active }),
    };
    for (const [name, value] of Object.entries(attributes)) area.setAttribute(name, value);
    if (active !== null) document.getElementById(active)?.scrollIntoView({ block: "nearest" });
    return () => {
      for (const name of Object.keys(attributes)) area.removeAttribute(name);
    };
  }, [field, list, active]);
}
