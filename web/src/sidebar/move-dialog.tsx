// The dialog that moves a conversation into a project, or out of its project.
import { useInfiniteQuery } from "@tanstack/react-query";
import { api, body, Refusal, type Conversation } from "../api/client";
import { moveTargetsQuery, projectChanged } from "../api/projects";
import { cacheConversation } from "../api/queries";
import { noticeSignOut } from "../api/session-state";
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { Icon } from "../controls/icon";
import { toast } from "../controls/toast";
import { useLocalization, type Localization } from "../messages/localization";
import { useMoving } from "./moving";

const close = (): void => useMoving.setState({ conversation: null });

function put(conversation: Conversation, project: string | null): Promise<Conversation> {
  return body(
    api.PUT("/conversations/{conversation_id}/project", {
      params: {
        path: { conversation_id: conversation.conversation_id },
        header: { "If-Match": `"v${conversation.version}"` },
      },
      body: { project_id: project },
    }),
  );
}

async function move(conversation: Conversation, project: string | null, t: Localization["t"]): Promise<void> {
  close();
  try {
    const moved = await put(conversation, project).catch((refusal: unknown) => {
      // Something else of the conversation has changed, for example its title.
      if (!(refusal instanceof Refusal) || refusal.code !== "stale_version") throw refusal;
      return put(refusal.problem?.current as unknown as Conversation, project);
    });
    cacheConversation(moved);
    toast(t(project === null ? "pages.move.removed" : "pages.move.done"));
  } catch (refusal) {
    noticeSignOut(refusal);
    const refused = refusal instanceof Refusal && (refusal.status === 409 || refusal.status === 404);
    toast(t(refused ? "pages.move.refused" : "pages.move.failed"), { kind: "problem" });
  } finally {
    projectChanged();
  }
}

export function MoveDialog() {
  const { t } = useLocalization();
  const conversation = useMoving((moving) => moving.conversation);
  const id = conversation?.conversation_id ?? "";
  const { data, isError, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    ...moveTargetsQuery(id),
    enabled: conversation !== null,
  });
  if (conversation === null) return null;
  const targets = (data?.pages.flatMap((page) => page.data) ?? []).filter(
    (project) => project.project_id !== conversation.project_id,
  );
  const entry =
    "flex min-h-10 w-full items-center gap-2.5 rounded-md px-2.5 text-start text-sm hover:bg-hover pointer-coarse:min-h-11";
  return (
    <Dialog title={t("pages.move.title")} onClose={close}>
      <ul className="flex max-h-80 flex-col overflow-y-auto">
        {conversation.project_id !== null && (
          <li>
            <button type="button" className={entry} onClick={() => void move(conversation, null, t)}>
              <Icon name="close" size={16} />
              {t("pages.move.out")}
            </button>
          </li>
        )}
        {targets.map((project) => (
          <li key={project.project_id}>
            <button type="button" className={entry} onClick={() => void move(conversation, project.project_id, t)}>
              <Icon name="folder" size={16} />
              <span dir="auto" className="truncate [text-align:match-parent]">
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
