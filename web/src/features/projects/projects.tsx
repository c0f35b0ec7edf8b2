// The projects in the sidebar: a link to each, and a button that creates one.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { projectsQuery } from "../../api/projects";
import { IconButton } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { Icon } from "../../controls/icon";
import { useLocalization } from "../../messages/localization";

export const NewProjectDialog = deferred(() => import("./project-name-dialog").then((m) => m.NewProjectDialog), {
  onFailure: ({ onClose }) => onClose(),
});

export function Projects({ onOpen }: { onOpen: () => void }) {
  const { t } = useLocalization();
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(projectsQuery("active"));
  const current = useParams({ strict: false }).project ?? null;
  const [naming, setNaming] = useState(false);
  const navigate = useNavigate();
  const projects = data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <section aria-label={t("pages.projects")} className="px-2 pb-1">
      <div className="flex items-center justify-between ps-2.5 pe-0.5 pt-2">
        <h2 className="text-xs font-medium text-faint">{t("pages.projects")}</h2>
        <IconButton size="small" icon="add" label={t("pages.projects.new")} onClick={() => setNaming(true)} />
      </div>
      {/* At most some rows high, so that the conversations below stay visible. */}
      <ul className="max-h-44 overflow-y-auto">
        {projects.map((project) => (
          <li key={project.project_id}>
            <Link
              to="/p/$project"
              params={{ project: project.project_id }}
              aria-current={project.project_id === current ? "page" : undefined}
              onClick={onOpen}
              className="flex min-h-9 items-center gap-2.5 rounded-md px-2.5 text-sm hover:bg-hover aria-[current]:bg-hover aria-[current]:font-medium pointer-coarse:min-h-11"
            >
              <Icon name="folder" size={16} />
              <span dir="auto" className="truncate text-as-parent">
                {project.name}
              </span>
            </Link>
          </li>
        ))}
        {hasNextPage && (
          <li>
            <button
              type="button"
              className="flex min-h-9 w-full items-center rounded-md px-2.5 text-start text-sm text-soft hover:bg-hover"
              onClick={() => !isFetchingNextPage && void fetchNextPage()}
            >
              {t("pages.archive.more")}
            </button>
          </li>
        )}
      </ul>
      {naming && (
        <NewProjectDialog
          onClose={() => setNaming(false)}
          onCreated={(project) => {
            setNaming(false);
            onOpen();
            void navigate({ to: "/p/$project", params: { project: project.project_id } });
          }}
        />
      )}
    </section>
  );
}
