import { attach } from "../../api/attachments";
import { useMessages } from "../../messages/localization";
import { ChooseFilesDialog } from "../files";
import { useDrafts } from "./page-drafts";
import { fileMessages } from "../../messages/files";

const noFiles: readonly string[] = [];

/** Adds files of the library to the message that is being written in a conversation. */
export function AttachFilesDialog({ conversation, onClose }: { conversation: string; onClose: () => void }) {
  const t = useMessages(fileMessages);
  const attached = useDrafts(({ byID }) => byID[conversation]?.files ?? noFiles);
  return (
    <ChooseFilesDialog
      title={t("library.project.add_title")}
      isAdded={({ file_id }) => attached.includes(file_id)}
      add={({ file_id, filename }) => attach(conversation, [{ id: file_id, name: filename }])}
      onClose={onClose}
    />
  );
}
