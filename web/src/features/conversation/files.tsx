// The files of a message, each as a button that shows it.
import { useQuery } from "@tanstack/react-query";
import { viewFile } from "../../controls/viewed-file";
import { statesQuery } from "../../api/files";
import { FilePicture } from "../../controls/file-picture";
import { useLocalization } from "../../messages/localization";

export function MessageFiles({ ids }: { ids: readonly string[] }) {
  const { t } = useLocalization();
  const { data } = useQuery(statesQuery(ids));
  return (
    <ul aria-label={t("transcript.files")} className="mb-1.5 flex max-w-[85%] flex-wrap justify-end gap-1.5">
      {ids.map((id, at) => {
        const file = data?.data[at]?.file ?? null;
        const missing = data !== undefined && file === null;
        const name = file?.filename ?? t(missing ? "transcript.file.missing" : "transcript.file.loading");
        return (
          <li key={id} className="max-w-full">
            <button
              type="button"
              disabled={file === null}
              className="flex max-w-full items-center gap-2 rounded-md border border-line bg-raised p-1 pe-3 text-sm enabled:hover:bg-hover disabled:text-faint"
              onClick={() => viewFile({ id, name })}
            >
              <FilePicture file={file} size={48} />
              <bdi className="truncate">{name}</bdi>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
