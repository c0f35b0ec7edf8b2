// The files of a project: uploads for it, files that are added from the library, and their removal.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import {
  addToProject,
  filesChanged,
  projectFilesQuery,
  removeFromProject,
  uniqueFiles,
  type StoredFile,
} from "../../api/files";
import type { Project } from "../../api/projects";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { ChooseFilesDialog, FileList, UploadButton, UploadList } from "../files";
import { fileMessages } from "../../messages/files";

export function ProjectFiles({ project }: { project: Project }) {
  const t = useMessages(fileMessages);
  const id = project.project_id;
  const query = useInfiniteQuery(projectFilesQuery(id));
  const [adding, setAdding] = useState(false);
  const active = project.state === "active";
  const files = uniqueFiles(query.data?.pages ?? []);
  const remove = async ({ file_id }: StoredFile) => {
    try {
      await removeFromProject(file_id, id);
    } catch (refusal) {
      noticeSignOut(refusal);
      toast(t("pages.projects.failed"), { kind: "problem" });
    } finally {
      void filesChanged();
    }
  };
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
      {files.length > 0 && (
        <FileList files={files} project={{ readOnly: !active, onRemove: (file) => void remove(file) }} {...query} />
      )}
      {adding && (
        <ChooseFilesDialog
          title={t("library.project.add_title")}
          isAdded={({ project_ids }) => project_ids.includes(id)}
          add={({ file_id }) => addToProject(file_id, id).finally(filesChanged)}
          onClose={() => setAdding(false)}
        />
      )}
    </section>
  );
}
