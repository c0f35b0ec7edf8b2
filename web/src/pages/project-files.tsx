// The files of a project: uploads for it, files that are added from the library, and their removal.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import {
  addToProject,
  filesChanged,
  filesQuery,
  projectFilesQuery,
  removeFromProject,
  uniqueFiles,
  type StoredFile,
} from "../api/files";
import type { Project } from "../api/projects";
import { noticeSignOut } from "../api/session-state";
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { ShowMore } from "../controls/show-more";
import { toast } from "../controls/toast";
import { useLocalization } from "../messages/localization";
import { FileList } from "./file-list";
import { SearchField } from "./library";
import { UploadButton, UploadList } from "../composer/uploads";

/** Runs a change of the files of a project and reports a failure. */
async function run(change: () => Promise<unknown>, failed: string): Promise<void> {
  try {
    await change();
  } catch (refusal) {
    noticeSignOut(refusal);
    toast(failed, { kind: "problem" });
  } finally {
    void filesChanged();
  }
}

export function ProjectFiles({ project }: { project: Project }) {
  const { t } = useLocalization();
  const id = project.project_id;
  const query = useInfiniteQuery(projectFilesQuery(id));
  const [adding, setAdding] = useState(false);
  const active = project.state === "active";
  const files = uniqueFiles(query.data?.pages ?? []);
  const remove = ({ file_id }: StoredFile) =>
    void run(() => removeFromProject(file_id, id), t("pages.projects.failed"));
  return (
    <section aria-labelledby="project-files" className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 id="project-files" className="font-semibold">
          {t("library.files")}
        </h2>
        {active && (
          <div className="flex flex-wrap gap-2">
            <Button icon="add" onClick={() => setAdding(true)}>
              {t("library.project.add")}
            </Button>
            <UploadButton project={id} look="plain" />
          </div>
        )}
      </div>
      <UploadList of={{ project: id }} />
      {query.isError && query.data === undefined && (
        <Button icon="retry" className="w-fit" onClick={() => void query.refetch()}>
          {t("library.not_loaded")}
        </Button>
      )}
      {query.data !== undefined && files.length === 0 && (
        <p className="text-sm text-soft">{t("library.project.empty")}</p>
      )}
      {files.length > 0 && <FileList files={files} project={{ readOnly: !active, onRemove: remove }} {...query} />}
      {adding && <AddFilesDialog project={id} onClose={() => setAdding(false)} />}
    </section>
  );
}

/** The files of the library, each with a button that adds it to the project. */
function AddFilesDialog({ project, onClose }: { project: string; onClose: () => void }) {
  const { t } = useLocalization();
  const [typed, setTyped] = useState("");
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    filesQuery({ query: typed.trim(), kind: "all", sort: "newest" }),
  );
  const files = uniqueFiles(data?.pages ?? []);
  return (
    <Dialog title={t("library.project.add_title")} onClose={onClose}>
      <SearchField value={typed} onChange={setTyped} />
      <ul aria-label={t("library.files")} className="flex max-h-80 flex-col overflow-y-auto">
        {files.map(({ file_id, filename, project_ids }) => {
          const added = project_ids.includes(project);
          return (
            <li key={file_id} className="flex min-h-11 items-center gap-3 text-sm">
              <span dir="auto" className="min-w-0 grow truncate [text-align:match-parent]">
                {filename}
              </span>
              <Button
                icon={added ? "check" : "add"}
                className="me-1 aria-disabled:text-faint"
                aria-disabled={added}
                onClick={() => !added && void run(() => addToProject(file_id, project), t("pages.projects.failed"))}
              >
                {t(added ? "library.project.added" : "library.project.add_one")}
                <span className="sr-only">{filename}</span>
              </Button>
            </li>
          );
        })}
      </ul>
      {data !== undefined && files.length === 0 && (
        <p className="text-sm text-soft">{t(typed.trim() === "" ? "library.empty" : "library.none")}</p>
      )}
      <ShowMore label={t("pages.archive.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
    </Dialog>
  );
}
