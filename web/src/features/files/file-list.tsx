// A list of files, each with a button that shows it, a link to download it and a menu. The next page is loaded when the end becomes visible.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useState, type ReactNode } from "react";
import { contentPath, filesChanged, keepFile, type StoredFile } from "../../api/files";
import { projectQuery, projectsQuery } from "../../api/projects";
import { noticeSignOut } from "../../api/session-state";
import { IconButton } from "../../controls/button";
import { FilePicture } from "../../controls/file-picture";
import { Icon } from "../../controls/icon";
import { Menu, MenuItem } from "../../controls/menu";
import { ShowMore } from "../../controls/show-more";
import { toast } from "../../controls/toast";
import { viewFile } from "../../controls/viewed-file";
import { useLocalization, useMessages } from "../../messages/localization";
import { byteSize } from "../../messages/byte-size";
import { DeleteFileDialog, FileProjectsDialog, RenameFileDialog } from "./file-dialogs";
import { fileMessages } from "../../messages/files";

interface FileListProps {
  files: readonly StoredFile[];
  /** The project whose files are listed, with the button that removes one; absent: the library. */
  project?: { readOnly: boolean; onRemove: (file: StoredFile) => void };
  hasNextPage: boolean;
  isFetching: boolean;
  isFetchNextPageError: boolean;
  fetchNextPage: () => Promise<unknown>;
}

export function FileList({ files, project, ...next }: FileListProps) {
  const t = useMessages(fileMessages);
  const [dialog, setDialog] = useState<{ kind: "rename" | "delete" | "projects"; opened: StoredFile } | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const onClose = () => setDialog(null);
  const keep = async ({ file_id, filename }: StoredFile) => {
    try {
      await keepFile(file_id);
      toast(t("library.keep.done", { name: filename }));
    } catch (refusal) {
      noticeSignOut(refusal);
      toast(t("library.keep.failed"), { kind: "problem" });
    } finally {
      void filesChanged();
    }
  };
  // The item of the menu that opened the dialog no longer exists, and after a deletion its row does not either.
  const returnTo = (deleted = false) =>
    document.querySelector<HTMLElement>(deleted ? "[data-upload]" : `[data-menu-of="${dialog?.opened.file_id}"]`);
  // Another device may change the file while the dialog is open. If it is no longer listed, the dialog explains why.
  const file = files.find((one) => one.file_id === dialog?.opened.file_id) ?? dialog?.opened;
  return (
    <div>
      <ul
        ref={list}
        tabIndex={-1}
        aria-label={t("library.files")}
        className="divide-y divide-line rounded-lg border border-line bg-raised outline-none"
      >
        {files.map((one) => (
          <Row key={one.file_id} file={one} inProject={project !== undefined}>
            {project === undefined ? (
              <Menu
                align="end"
                trigger={
                  <IconButton data-menu-of={one.file_id} icon="dots" label={t("library.menu")} target={one.filename} />
                }
              >
                <MenuItem icon="edit" onSelect={() => setDialog({ kind: "rename", opened: one })}>
                  {t("pages.rename.do")}
                </MenuItem>
                <MenuItem icon="folder" onSelect={() => setDialog({ kind: "projects", opened: one })}>
                  {t("library.projects")}
                </MenuItem>
                {!one.kept && (
                  <MenuItem icon="file" onSelect={() => void keep(one)}>
                    {t("library.keep")}
                  </MenuItem>
                )}
                <MenuItem icon="trash" danger onSelect={() => setDialog({ kind: "delete", opened: one })}>
                  {t("pages.delete.do")}
                </MenuItem>
              </Menu>
            ) : (
              !project.readOnly && (
                <IconButton
                  icon="close"
                  label={t("library.project.remove")}
                  target={one.filename}
                  onClick={() => {
                    list.current?.focus(); // the pressed button will be removed
                    project.onRemove(one);
                  }}
                />
              )
            )}
          </Row>
        ))}
      </ul>
      <NextPage {...next} />
      {file !== undefined && dialog?.kind === "rename" && <RenameFileDialog {...{ file, onClose, returnTo }} />}
      {file !== undefined && dialog?.kind === "projects" && <FileProjectsDialog {...{ file, onClose, returnTo }} />}
      {file !== undefined && dialog?.kind === "delete" && <DeleteFileDialog {...{ file, onClose, returnTo }} />}
    </div>
  );
}

/** Loads the next page when its button becomes visible; after a failure, when the button is pressed. */
function NextPage({ isFetching, isFetchNextPageError, ...next }: Omit<FileListProps, "files" | "project">) {
  const { t } = useLocalization();
  const end = useRef<HTMLDivElement>(null);
  const { hasNextPage } = next;
  const reached = useEffectEvent(() => {
    // Another fetch would cancel one that is in progress.
    if (hasNextPage && !isFetching && !isFetchNextPageError) void next.fetchNextPage();
  });
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && reached());
    if (end.current !== null) observer.observe(end.current);
    return () => observer.disconnect();
    // A new page may leave the end visible.
  }, [hasNextPage, isFetching]);
  return (
    <div ref={end}>
      <ShowMore label={t("pages.archive.more")} isFetchingNextPage={isFetching} {...next} />
    </div>
  );
}

/** children: the buttons at its end. inProject: whether the list is that of one project. */
function Row({ file, inProject, children }: { file: StoredFile; inProject: boolean; children: ReactNode }) {
  const { intl } = useLocalization();
  const t = useMessages(fileMessages);
  const { filename, size, created_at, project_ids } = file;
  return (
    <li className="flex items-center gap-3 py-1.5 ps-3 pe-2 text-sm">
      <FilePicture file={file} size={40} />
      <div className="min-w-0 grow">
        <button
          type="button"
          className="-my-0.5 min-h-6 max-w-full rounded-sm text-start font-medium wrap-anywhere hover:underline"
          onClick={() => viewFile({ id: file.file_id, name: filename })}
        >
          <bdi>{filename}</bdi>
        </button>
        <p className="flex flex-wrap gap-x-3 text-soft">
          <span>{byteSize(intl, size)}</span>
          <span>{intl.formatDate(created_at, { dateStyle: "medium" })}</span>
          {!file.kept && <span>{t("library.temporary")}</span>}
          {!inProject && project_ids.map((id) => <ProjectLink key={id} id={id} />)}
        </p>
      </div>
      <a
        href={contentPath(file)}
        download=""
        aria-label={`${t("library.download")}: ${filename}`}
        data-tooltip={t("library.download")}
        className="inline-flex size-9 shrink-0 items-center justify-center rounded-md text-soft hover:bg-hover hover:text-ink pointer-coarse:size-11"
      >
        <Icon name="download" />
      </a>
      {children}
    </li>
  );
}

/** A link to a project, which is usually among the loaded active ones. */
function ProjectLink({ id }: { id: string }) {
  const { data: active } = useInfiniteQuery(projectsQuery("active"));
  const listed = active?.pages.flatMap((page) => page.data).find((one) => one.project_id === id);
  const { data: fetched } = useQuery({ ...projectQuery(id), enabled: active !== undefined && listed === undefined });
  const project = listed ?? fetched;
  if (project === undefined || project.state === "deleted") return null;
  return (
    <Link
      to="/p/$project"
      params={{ project: id }}
      className="-my-0.5 inline-flex min-h-6 max-w-full items-center gap-1 hover:underline"
    >
      <Icon name="folder" size={14} />
      <span dir="auto" className="truncate">
        {project.name}
      </span>
    </Link>
  );
}
