// The dialog that moves conversations into a project, or out of their projects.
import { useInfiniteQuery } from "@tanstack/react-query";
import { moveTargetsQuery, projectsQuery } from "../../api/projects";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { moveAll } from "./bulk";
import { useMoving } from "./moving";
import { organizingMessages } from "../../messages/organizing";

const close = (): void => useMoving.setState({ conversations: [] });

export function MoveDialog() {
  const t = useMessages(organizingMessages);
  const conversations = useMoving((moving) => moving.conversations);
  const [first] = conversations;
  const one = useInfiniteQuery({
    ...moveTargetsQuery(first?.conversation_id ?? ""),
    enabled: conversations.length === 1,
  });
  // Every active project can take conversations that are not temporary.
  const several = useInfiniteQuery({ ...projectsQuery("active"), enabled: conversations.length > 1 });
  if (first === undefined) return null;
  const { data, isError, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } =
    conversations.length === 1 ? one : several;
  const targets = (data?.pages.flatMap((page) => page.data) ?? []).filter((project) =>
    conversations.some((one) => one.project_id !== project.project_id),
  );
  const move = (project: string | null) => {
    close();
    void moveAll(conversations, project, t);
  };
  const entry =
    "flex min-h-10 w-full items-center gap-2.5 rounded-md px-2.5 text-start text-sm hover:bg-hover pointer-coarse:min-h-11";
  return (
    <Dialog title={t("pages.move.title")} onClose={close}>
      <ul className="flex max-h-80 flex-col overflow-y-auto">
        {conversations.some((one) => one.project_id !== null) && (
          <li>
            <button type="button" className={entry} onClick={() => move(null)}>
              <Icon name="close" size={16} />
              {t("pages.move.out", { count: conversations.length })}
            </button>
          </li>
        )}
        {targets.map((project) => (
          <li key={project.project_id}>
            <button type="button" className={entry} onClick={() => move(project.project_id)}>
              <Icon name="folder" size={16} />
              <span dir="auto" className="truncate text-as-parent">
                {project.name}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {data !== undefined && targets.length === 0 && <p className="text-sm text-soft">{t("pages.move.none")}</p>}
      {isError && data === undefined && (
        <Button icon="retry" className="w-fit" onClick={() => void refetch()}>
          {t("pages.retry")}
        </Button>
      )}
      {hasNextPage && (
        <Button className="w-fit" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {t("pages.archive.more")}
        </Button>
      )}
    </Dialog>
  );
}
