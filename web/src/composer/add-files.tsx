// The button that adds files to the message that is being written. The code that uploads them is loaded when it is needed.
import { useRef } from "react";
import { IconButton } from "../controls/button";
import { useLocalization } from "../messages/localization";

/** Uploads files for the message that is being written in a conversation. */
export async function addFiles(conversation: string, files: FileList): Promise<void> {
  const list = [...files]; // the browser empties a FileList
  const { addUploads } = await import("../api/uploads");
  addUploads(list, { project: null, conversation });
}

export function AddFilesButton({ conversation }: { conversation: string }) {
  const { t } = useLocalization();
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton data-upload="" icon="add" label={t("composer.add_files")} onClick={() => chooser.current?.click()} />
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
    </>
  );
}
