// The files of the message that is being written, and the uploads that will become such files. While it is displayed, files
// can be dropped anywhere on the page.
import { useQuery } from "@tanstack/react-query";
import { attachmentsOf, detach, maxAttachments, useAttachments } from "../api/attachments";
import { viewFile } from "../api/file-view";
import { statesQuery } from "../api/files";
import { useUploads } from "../api/uploads";
import { IconButton } from "../controls/button";
import { Icon } from "../controls/icon";
import { useLocalization } from "../messages/localization";
import { focusComposer } from "./composer-requests";
import { DropTarget, UploadList } from "./uploads";

export function Attached({ conversation }: { conversation: string }) {
  const { t } = useLocalization();
  const files = useAttachments((state) => attachmentsOf(state, conversation));
  // A message that returned to the composer has only the identifiers.
  const unnamed = files.flatMap(({ id, name }) => (name === "" ? [id] : []));
  const { data: states } = useQuery({ ...statesQuery(unnamed), enabled: unnamed.length > 0 });
  const nameOf = (id: string) => states?.data.find((one) => one.file_id === id)?.file?.filename ?? "…";
  const uploading = useUploads(({ list }) => list.some(({ to }) => to.conversation === conversation));
  return (
    <div className={`flex flex-col gap-2 px-3 ${files.length > 0 || uploading ? "pt-3" : ""}`}>
      <DropTarget to={{ project: null, conversation }} text={t("composer.drop")} />
      {files.length > 0 && (
        <ul aria-label={t("composer.files")} className="flex max-h-32 flex-wrap gap-1.5 overflow-y-auto">
          {files.map(({ id, name: known }) => {
            const name = known || nameOf(id);
            return (
              <li
                key={id}
                className="flex max-w-full items-center rounded-md border border-line bg-sunken ps-1 text-sm"
              >
                <button
                  type="button"
                  className="flex min-h-8 min-w-0 items-center gap-1.5 rounded-sm px-1 hover:underline pointer-coarse:min-h-11"
                  onClick={() => viewFile({ id, name })}
                >
                  <Icon name="file" size={16} />
                  <bdi className="truncate">{name}</bdi>
                </button>
                <IconButton
                  size="small"
                  icon="close"
                  label={t("composer.remove_file")}
                  target={name}
                  onClick={() => {
                    focusComposer(); // the pressed button is removed
                    detach(conversation, id);
                  }}
                />
              </li>
            );
          })}
        </ul>
      )}
      {files.length > maxAttachments && (
        <p role="alert" className="text-sm text-danger">
          {t("composer.too_many_files", { most: maxAttachments })}
        </p>
      )}
      <UploadList of={{ conversation }} />
    </div>
  );
}
