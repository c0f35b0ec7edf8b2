// What the model will not get of the texts of the files of a message.
import type { Schemas } from "../../api/client";
import { useMessages } from "../../messages/localization";
import { readingMessages } from "../../messages/reading";
import { readingNotes } from "./reading-notes";

export function AttachedNotes({ files }: { files: readonly Schemas["PreparedFile"][] }) {
  const t = useMessages(readingMessages);
  return files.map((file) => {
    const notes = readingNotes(t, file);
    if (notes.length === 0) return null;
    return (
      <p key={file.file_id} className="wrap-anywhere">
        <bdi>{file.filename}</bdi>: {notes.join(" ")}
        {file.shown === "nothing" && ` ${t("file.model_nothing")}`}
      </p>
    );
  });
}
