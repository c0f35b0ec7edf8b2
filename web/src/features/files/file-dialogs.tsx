// The dialogs about one file: its name, its deletion and its projects.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Refusal } from "../../api/client";
import {
  addToProject,
  deleteFile,
  filesChanged,
  removeFromProject,
  renameFile,
  type StoredFile,
} from "../../api/files";
import { projectsQuery } from "../../api/projects";
import { noticeSignOut } from "../../api/session-state";
import { maxFilename } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { Check } from "../../controls/form-controls";
import { ShowMore } from "../../controls/show-more";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { FormError } from "../../controls/form-error";
import { fileMessages } from "../../messages/files";

interface FileDialogProps {
  file: StoredFile;
  onClose: () => void;
  /** Returns the element to focus after closing. deleted: whether the file was deleted. */
  returnTo: (deleted?: boolean) => HTMLElement | null;
}

export function RenameFileDialog({ file, onClose, returnTo }: FileDialogProps) {
  const t = useMessages(fileMessages);
  const [name, setName] = useState(file.filename);
  /** The version on which the new name is based. */
  const [version, setVersion] = useState(file.version);
  const [problem, setProblem] = useState<string>();
  const [saving, setSaving] = useState(false);
  const save = async () => {
    setSaving(true);
    setProblem(undefined);
    try {
      await renameFile(file.file_id, version, name.trim());
      onClose();
    } catch (refusal) {
      noticeSignOut(refusal);
      setProblem(problemOf(refusal));
    } finally {
      setSaving(false);
      void filesChanged();
    }
  };
  const problemOf = (refusal: unknown): string => {
    const status = refusal instanceof Refusal ? refusal.status : 0;
    if (refusal instanceof Refusal && refusal.code === "stale_version") {
      const current = refusal.problem?.current as StoredFile;
      setVersion(current.version);
      return t("library.rename.conflict", { name: current.filename });
    }
    if (status === 404) return t("library.gone");
    return t(status === 422 ? "library.rename.invalid" : "library.rename.failed");
  };
  return (
    <Dialog title={t("library.rename")} onClose={onClose} returnTo={() => returnTo()}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "" && !saving) void save();
        }}
      >
        <Field
          data-autofocus=""
          dir="auto"
          autoComplete="off"
          label={t("pages.projects.name")}
          maxLength={maxFilename}
          value={name}
          onChange={(event) => setName(event.target.value)}
          problem={problem}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("pages.cancel")}</Button>
          <Button type="submit" look="primary" disabled={name.trim() === "" || saving}>
            {t("pages.projects.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

export function DeleteFileDialog({ file, onClose, returnTo }: FileDialogProps) {
  const t = useMessages(fileMessages);
  const [state, setState] = useState<"" | "deleting" | "failed">("");
  const deleted = useRef(false);
  const remove = async () => {
    setState("deleting");
    try {
      await deleteFile(file.file_id).catch((refusal: unknown) => {
        if (!(refusal instanceof Refusal && refusal.status === 404)) throw refusal; // already deleted
      });
      deleted.current = true;
      toast(t("library.delete.done", { name: file.filename }));
      onClose();
    } catch (refusal) {
      noticeSignOut(refusal);
      setState("failed");
    } finally {
      void filesChanged();
    }
  };
  return (
    <Dialog
      title={t("library.delete.title", { name: file.filename })}
      description={t("library.delete.hint", { count: file.project_ids.length })}
      onClose={onClose}
      returnTo={() => returnTo(deleted.current)}
    >
      {state === "failed" && <FormError>{t("library.delete.failed")}</FormError>}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{t("pages.cancel")}</Button>
        <Button look="danger" icon="trash" disabled={state === "deleting"} onClick={() => void remove()}>
          {t("pages.delete.do")}
        </Button>
      </div>
    </Dialog>
  );
}

/** The active projects, each with a checkbox that adds the file to it or removes the file from it. */
export function FileProjectsDialog({ file, onClose, returnTo }: FileDialogProps) {
  const t = useMessages(fileMessages);
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(projectsQuery("active"));
  const [failed, setFailed] = useState(false);
  /** Whether the file is to be in a project, by project, until the list of files shows it. */
  const [wanted, setWanted] = useState<Readonly<Record<string, boolean>>>({});
  const projects = data?.pages.flatMap((page) => page.data) ?? [];
  const set = async (project: string, member: boolean) => {
    setFailed(false);
    setWanted((before) => ({ ...before, [project]: member }));
    try {
      await (member ? addToProject : removeFromProject)(file.file_id, project);
    } catch (refusal) {
      noticeSignOut(refusal);
      setFailed(true);
    } finally {
      await filesChanged().catch(() => {});
      setWanted(({ [project]: _, ...others }) => others);
    }
  };
  return (
    <Dialog title={t("library.projects.title", { name: file.filename })} onClose={onClose} returnTo={() => returnTo()}>
      <ul className="flex max-h-80 flex-col overflow-y-auto px-2">
        {projects.map(({ project_id, name }) => (
          <li key={project_id} className="wrap-anywhere">
            <Check
              label={name}
              checked={wanted[project_id] ?? file.project_ids.includes(project_id)}
              onChange={(member) => void set(project_id, member)}
            />
          </li>
        ))}
      </ul>
      {data !== undefined && projects.length === 0 && <p className="text-sm text-soft">{t("library.projects.none")}</p>}
      <ShowMore label={t("pages.archive.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
      <div role="status" className="empty:hidden">
        {failed && <FormError>{t("pages.projects.failed")}</FormError>}
      </div>
    </Dialog>
  );
}
