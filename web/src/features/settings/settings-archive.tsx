// Settings: the archived conversations, each with buttons to restore and delete it, or a checkbox while several are being
// selected.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";
import type { Conversation } from "../../api/client";
import { archiveQuery } from "../../api/queries";
import { Button, IconButton } from "../../controls/button";
import { NotLoaded } from "../../controls/not-loaded";
import { ShowMore } from "../../controls/show-more";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import {
  confirmDeletion,
  restore,
  SelectionRow,
  SelectionToolbar,
  setSelectable,
  startSelecting,
  stopSelecting,
  useDeletion,
  useSelecting,
} from "../sidebar";
import { uniqueConversations } from "../../api/conversation-pages";

export function Archive() {
  const t = useMessages(settingsMessages);
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(archiveQuery);
  const list = useRef<HTMLUListElement>(null);
  const removed = useRef(false);
  useEffect(() => {
    // The pressed button was removed with its row; the list takes the focus.
    if (removed.current && document.activeElement === document.body) list.current?.focus();
    removed.current = false;
  }, [data]);
  const leaving = useSelecting((selecting) => selecting.leaving);
  const selected = useSelecting((selecting) => (selecting.list === "archive" ? selecting.selection.ids : null));
  const archived = useMemo(
    () => uniqueConversations(data?.pages ?? []).filter((one) => leaving.get(one.conversation_id) !== "archive"),
    [data, leaving],
  );
  const deleting = useDeletion((deletion) => deletion.pending);
  useEffect(() => {
    setSelectable("archive", () => archived.map((one) => one.conversation_id).filter((id) => !deleting.has(id)));
  }, [archived, deleting]);
  useEffect(() => {
    void SelectionToolbar.preload().catch(() => {});
    return () => void stopSelecting("archive");
  }, []);
  if (isError && data === undefined) return <NotLoaded again={refetch}>{t("settings.archive.not_loaded")}</NotLoaded>;
  if (data === undefined) return null;
  if (archived.length === 0) return <p className="py-3 text-sm text-soft">{t("settings.archive.empty")}</p>;
  return (
    <>
      {selected === null ? (
        <Button
          icon="check"
          className="my-2 w-fit"
          onClick={() => {
            startSelecting("archive");
            // The pressed button is removed.
            requestAnimationFrame(() => list.current?.querySelector<HTMLElement>("[data-conversation]")?.focus());
          }}
        >
          {t("pages.selection.do")}
        </Button>
      ) : (
        <SelectionToolbar list="archive" conversations={archived} />
      )}
      <ul
        ref={list}
        tabIndex={-1}
        data-list="archive"
        aria-label={t("pages.archive.title")}
        className="divide-y divide-line outline-none"
      >
        {archived.map((one) => (
          <Row
            selected={selected && selected.has(one.conversation_id)}
            key={one.conversation_id}
            conversation={one}
            onRestore={() => {
              removed.current = true;
              void restore(one, t);
            }}
          />
        ))}
      </ul>
      <ShowMore label={t("pages.archive.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
    </>
  );
}

interface RowProps {
  conversation: Conversation;
  /** Whether it is selected; null: none is being selected. */
  selected: boolean | null;
  onRestore: () => void;
}

function Row({ conversation, selected, onRestore }: RowProps) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const id = conversation.conversation_id;
  const deleting = useDeletion((deletion) => deletion.pending.has(id));
  const title = conversation.title || t("pages.untitled");
  const date = intl.formatDate(conversation.last_activity_at, { dateStyle: "medium" });
  if (selected !== null)
    return (
      <li className="flex min-h-11 items-center">
        <SelectionRow list="archive" conversation={conversation} selected={selected} disabled={deleting}>
          <span className="shrink-0 text-soft">{date}</span>
        </SelectionRow>
      </li>
    );
  return (
    <li className="flex items-center gap-2 py-2">
      <span className="flex min-w-0 grow flex-col text-sm">
        <Link
          to="/c/$conversation"
          params={{ conversation: id }}
          dir="auto"
          className={`truncate font-medium text-as-parent hover:underline ${deleting ? "line-through" : ""}`}
        >
          {title}
        </Link>
        <span className="text-soft">{date}</span>
      </span>
      <Button disabled={deleting} aria-label={t("settings.archive.restore_one", { title })} onClick={onRestore}>
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
