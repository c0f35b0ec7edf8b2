// The page of a project: its state, a field that starts a conversation, its conversations, its instructions and its files.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Refusal } from "../../api/client";
import {
  type Project,
  archiveProject,
  instructionsQuery,
  projectChanged,
  projectConversationsQuery,
  projectQuery,
  putInstructions,
  restoreProject,
} from "../../api/projects";
import { noticeSignOut } from "../../api/session-state";
import { Button, IconButton } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { Menu, MenuItem } from "../../controls/menu";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { uniqueConversations } from "../../api/conversation-pages";
import { ProjectPrompts } from "../prompts";
import { RenameProjectDialog } from "./project-name-dialog";
import { NotFound } from "../../controls/not-found";
import { DeleteProjectDialog } from "./project-delete";
import { ProjectComposer } from "./project-composer";
import { ProjectFiles } from "./project-files";
import { Instructions } from "../../controls/instructions";
import { PageTitle } from "../../controls/page-title";
import { projectMessages } from "../../messages/projects";

export function ProjectPage() {
  const t = useMessages(projectMessages);
  const id = useParams({ strict: false }).project ?? "";
  const { data: project, error, refetch } = useQuery(projectQuery(id));
  const heading = useRef<HTMLHeadingElement>(null);
  const loaded = project !== undefined;
  useEffect(() => heading.current?.focus(), [id, loaded]);
  if (error instanceof Refusal && error.status === 404) return <NotFound />;
  if (project === undefined)
    return error === null ? null : (
      <div role="alert" className="m-auto px-6 text-center">
        <p>{t("pages.projects.not_loaded")}</p>
        <Button className="mt-4" icon="retry" onClick={() => void refetch()}>
          {t("pages.retry")}
        </Button>
      </div>
    );
  return (
    <div className="min-h-0 grow overflow-y-auto short:overflow-visible">
      <PageTitle name={project.name} />
      <div className="mx-auto flex w-full max-w-(--width-prose) flex-col gap-8 px-5 pt-4 pb-24 lg:max-w-260">
        <div className="flex items-center gap-2">
          <h1
            ref={heading}
            tabIndex={-1}
            dir="auto"
            className="min-w-0 grow text-xl font-semibold wrap-anywhere outline-none"
          >
            {project.name}
          </h1>
          <ProjectMenu project={project} />
        </div>
        {project.state !== "active" && <StateNotice project={project} />}
        {project.state !== "deleted" && (
          <div className="grid gap-x-12 gap-y-8 lg:grid-cols-[minmax(0,1fr)_20rem]">
            <div className="flex min-w-0 flex-col gap-8">
              {project.state === "active" && <ProjectComposer key={id} project={id} />}
              <ProjectConversations project={project} />
            </div>
            <div className="flex min-w-0 flex-col gap-8">
              <ProjectInstructions key={id} project={project} />
              <ProjectPrompts key={`prompts of ${id}`} project={project} />
              <ProjectFiles key={`files of ${id}`} project={project} />
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

/** Runs a change of a project and reports a failure. */
async function run(change: () => Promise<unknown>, failed: string): Promise<void> {
  try {
    await change();
  } catch (refusal) {
    noticeSignOut(refusal);
    toast(failed, { kind: "problem" });
  } finally {
    projectChanged();
  }
}

function ProjectMenu({ project }: { project: Project }) {
  const t = useMessages(projectMessages);
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const archived = project.state === "archived";
  if (project.state === "deleted") return null;
  return (
    <>
      <Menu align="end" trigger={<IconButton icon="dots" label={t("pages.projects.menu")} />}>
        {!archived && (
          <MenuItem icon="edit" onSelect={() => setDialog("rename")}>
            {t("pages.projects.rename")}
          </MenuItem>
        )}
        <MenuItem
          icon={archived ? "undo" : "archive"}
          onSelect={() => void run(() => archiveProject(project, !archived), t("pages.projects.failed"))}
        >
          {t(archived ? "pages.archive.restore" : "pages.archive.do")}
        </MenuItem>
        <MenuItem icon="trash" danger onSelect={() => setDialog("delete")}>
          {t("pages.delete.do")}
        </MenuItem>
      </Menu>
      {dialog === "rename" && <RenameProjectDialog project={project} onClose={() => setDialog(null)} />}
      {dialog === "delete" && <DeleteProjectDialog project={project} onClose={() => setDialog(null)} />}
    </>
  );
}

function StateNotice({ project }: { project: Project }) {
  const { intl } = useLocalization();
  const t = useMessages(projectMessages);
  const deleted = project.state === "deleted";
  return (
    <div className="flex flex-wrap items-center gap-3 rounded-lg bg-sunken px-4 py-3 text-sm">
      <Icon name={deleted ? "trash" : "archive"} />
      <p className="min-w-48 grow">
        {deleted
          ? t("pages.projects.deleted", {
              when: project.purge_at === null ? "" : intl.formatDate(project.purge_at, { dateStyle: "long" }),
            })
          : t("pages.projects.archived")}
      </p>
      <Button
        icon="undo"
        onClick={() =>
          void run(
            () => (deleted ? restoreProject(project) : archiveProject(project, false)),
            t("pages.projects.failed"),
          )
        }
      >
        {t("pages.archive.restore")}
      </Button>
    </div>
  );
}

function ProjectConversations({ project }: { project: Project }) {
  const { intl } = useLocalization();
  const t = useMessages(projectMessages);
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    projectConversationsQuery(project.project_id),
  );
  const conversations = uniqueConversations(data?.pages ?? []);
  return (
    <section aria-labelledby="project-conversations" className="flex flex-col gap-3">
      <h2 id="project-conversations" className="font-semibold">
        {t("pages.projects.conversations")}
      </h2>
      {data !== undefined && conversations.length === 0 ? (
        <p className="text-sm text-soft">{t("pages.projects.empty")}</p>
      ) : (
        <ul className="divide-y divide-line rounded-lg border border-line bg-raised">
          {conversations.map((one) => (
            <li key={one.conversation_id}>
              <Link
                to="/c/$conversation"
                params={{ conversation: one.conversation_id }}
                className="flex min-h-11 items-center gap-3 px-4 text-sm hover:bg-hover"
              >
                <span dir="auto" className="min-w-0 grow truncate text-as-parent">
                  {one.title || t("pages.untitled")}
                </span>
                <span className="shrink-0 text-xs text-faint">
                  {intl.formatDate(one.last_activity_at, { dateStyle: "medium" })}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      {hasNextPage && (
        <Button className="w-fit" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {t("pages.archive.more")}
        </Button>
      )}
    </section>
  );
}

function ProjectInstructions({ project: { project_id, state } }: { project: Project }) {
  const t = useMessages(projectMessages);
  const { data: stored } = useQuery(instructionsQuery(project_id));
  return (
    stored && (
      <Instructions
        stored={stored}
        label={t("pages.projects.instructions")}
        hint={t("pages.projects.instructions_hint")}
        readOnly={state !== "active"}
        put={(content, version) => putInstructions(project_id, content, version)}
        onPut={projectChanged}
      />
    )
  );
}
