// Settings: the archived conversations, each with buttons to restore and delete it.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { Conversation } from "../api/client";
import { archiveQuery } from "../api/queries";
import { Button, IconButton } from "../controls/button";
import { useLocalization } from "../messages/localization";
import { confirmDeletion, useDeletion } from "../sidebar/deletion";
import { uniqueConversations } from "../sidebar/groups";
import { restore } from "../sidebar/organize";

export function Archive() {
  const { t } = useLocalization();
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(archiveQuery);
  const list = useRef<HTMLUListElement>(null);
  const removed = useRef(false);
  useEffect(() => {
    // The pressed button was removed with its row; the list takes the focus.
    if (removed.current && document.activeElement === document.body) list.current?.focus();
    removed.current = false;
  }, [data]);
  if (isError && data === undefined)
    return (
      <Button icon="retry" className="my-3 w-fit" onClick={() => void refetch()}>
        {t("pages.archive.not_loaded")}
      </Button>
    );
  if (data === undefined) return null;
  const archived = uniqueConversations(data.pages);
  if (archived.length === 0) return <p className="py-3 text-sm text-soft">{t("pages.archive.empty")}</p>;
  return (
    <>
      <ul ref={list} tabIndex={-1} aria-label={t("pages.archive.title")} className="divide-y divide-line outline-none">
        {archived.map((one) => (
          <Row
            key={one.conversation_id}
            conversation={one}
            onRestore={() => {
              removed.current = true;
              void restore(one, t);
            }}
          />
        ))}
      </ul>
      {hasNextPage && (
        <Button
          className="my-3 w-fit aria-disabled:text-faint"
          aria-disabled={isFetchingNextPage}
          onClick={() => !isFetchingNextPage && void fetchNextPage()}
        >
          {t("pages.archive.more")}
        </Button>
      )}
    </>
  );
}

function Row({ conversation, onRestore }: { conversation: Conversation; onRestore: () => void }) {
  const { t, intl } = useLocalization();
  const id = conversation.conversation_id;
  const deleting = useDeletion((deletion) => deletion.pending.has(id));
  const title = conversation.title || t("pages.untitled");
  return (
    <li className="flex items-center gap-2 py-2">
      <span className="flex min-w-0 grow flex-col text-sm">
        <Link
          to="/c/$conversation"
          params={{ conversation: id }}
          dir="auto"
          className={`truncate font-medium [text-align:match-parent] hover:underline ${deleting ? "line-through" : ""}`}
        >
          {title}
        </Link>
        <span className="text-soft">{intl.formatDate(conversation.last_activity_at, { dateStyle: "medium" })}</span>
      </span>
      <Button disabled={deleting} aria-label={t("pages.archive.restore_one", { title })} onClick={onRestore}>
        {t("pages.archive.restore")}
      </Button>
      <IconButton
        icon="trash"
        label={t("pages.delete.do")}
        target={title}
        disabled={deleting}
        onClick={() => confirmDeletion(conversation)}
      />
    </li>
  );
}
