// The menu that adds files to the message that is being written: from this device, or from the library. The code that
// uploads them is loaded when it is needed.
import { useRef, useState } from "react";
import { IconButton } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { loadLater } from "../../controls/later";
import { Menu, MenuItem } from "../../controls/menu";
import { useLocalization } from "../../messages/localization";

const AttachFilesDialog = deferred(() => import("./attach-files").then((m) => m.AttachFilesDialog), {
  onFailure: ({ onClose }) => onClose(),
});

/** Uploads files for the message that is being written in a conversation. */
export async function addFiles(conversation: string, files: FileList | string): Promise<void> {
  const list = typeof files === "string" ? files : [...files]; // the browser empties a FileList
  loadLater(); // shows the uploads
  const { uploadForMessage } = await import("./attached");
  uploadForMessage(conversation, list);
}

export function AddFilesMenu({ conversation }: { conversation: string }) {
  const { t } = useLocalization();
  const chooser = useRef<HTMLInputElement>(null);
  const [choosing, setChoosing] = useState(false);
  return (
    <>
      <Menu side="top" align="start" trigger={<IconButton data-upload="" icon="add" label={t("composer.add_files")} />}>
        <MenuItem icon="upload" onSelect={() => chooser.current?.click()}>
          {t("library.upload")}
        </MenuItem>
        <MenuItem icon="file" keys="@" onSelect={() => setChoosing(true)}>
          {t("library.project.add")}
        </MenuItem>
      </Menu>
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        onChange={({ target }) => {
          void addFiles(conversation, target.files!);
          target.value = ""; // so that the same file can be chosen again
        }}
      />
      {choosing && <AttachFilesDialog conversation={conversation} onClose={() => setChoosing(false)} />}
    </>
  );
}
