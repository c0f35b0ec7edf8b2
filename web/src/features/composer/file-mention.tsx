// The list of files that opens when "@" is typed at the beginning of a word. The file that the user chooses becomes part of the
// message, and the word is removed from the text.
import { useQuery } from "@tanstack/react-query";
import type { RefObject } from "react";
import { attach } from "../../api/attachments";
import { pickerQuery, type StoredFile } from "../../api/files";
import { Icon } from "../../controls/icon";
import { useSearchedText } from "../../controls/search-field";
import { useLocalization, useMessages } from "../../messages/localization";
import { mentioningMessages } from "../../messages/mentioning";
import { useDrafts } from "./page-drafts";
import { fileAt, type Mention } from "./mention";
import { MentionList } from "./mention-list";
import { useMention } from "./use-mention";

interface FileMentionProps {
  conversation: string;
  /** The project of the conversation. */
  project: string | null;
  field: RefObject<HTMLTextAreaElement | null>;
  /** On which side of the field there is room for the list. */
  side: "above" | "below";
}

export function FileMention({ conversation, project, field, side }: FileMentionProps) {
  const { t } = useLocalization();
  const text = useMessages(mentioningMessages);
  const { mention, close } = useMention(field, fileAt);
  const found = useFoundFiles(project, mention?.query ?? null);
  const attached = useDrafts(({ byID }) => byID[conversation]?.files);
  const choose = ({ file_id, filename }: StoredFile, { start, end }: Mention) => {
    const area = field.current!; // its word is open
    attach(conversation, [{ id: file_id, name: filename }]);
    area.setRangeText("", start, end, "end");
    area.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "deleteContentBackward" }));
  };
  return (
    <MentionList
      field={field}
      side={side}
      mention={mention}
      close={close}
      items={found.files}
      idOf={({ file_id }) => file_id}
      loading={found.loading}
      label={text("mentioning.files")}
      none={
        found.loading
          ? t("transcript.file.loading")
          : text(found.failed ? "mentioning.files.failed" : "mentioning.files.none")
      }
      count={text("mentioning.files.count", { count: found.files.length })}
      onChoose={choose}
    >
      {(file) => (
        <>
          <Icon name={file.kind === "image" ? "image" : "file"} size={16} />
          <span className="flex min-w-0 grow">
            <bdi className="truncate">{file.filename}</bdi>
          </span>
          {attached?.includes(file.file_id) === true ? (
            <span className="shrink-0 text-xs text-soft">{t("library.project.added")}</span>
          ) : (
            found.isOfProject(file) && <span className="shrink-0 text-xs text-soft">{text("mentioning.project")}</span>
          )}
        </>
      )}
    </MentionList>
  );
}

const noFiles: readonly StoredFile[] = [];

/** The files whose names contain a text, those of the project first; null: none are needed. */
function useFoundFiles(project: string | null, query: string | null) {
  const searched = useSearchedText(query ?? "");
  const { data, isError, isPending, isPlaceholderData, fetchStatus } = useQuery({
    ...pickerQuery(searched),
    enabled: query !== null,
  });
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
