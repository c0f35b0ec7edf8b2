// The toolbar of a list while several conversations are being selected: how many, and what can be done with them.
import { useEffect, useState } from "react";
import type { Conversation } from "../../api/client";
import { IconButton } from "../../controls/button";
import { useMessages } from "../../messages/localization";
import { archiveSelected, restoreSelected } from "./bulk";
import { confirmDeletion } from "./deletion";
import { useMoving } from "./moving";
import { stopSelecting, useSelecting, type ListName } from "./selecting";
import { organizingMessages } from "../../messages/organizing";

interface SelectionToolbarProps {
  list: ListName;
  /** The conversations of the list. */
  conversations: readonly Conversation[];
}

export function SelectionToolbar({ list, conversations }: SelectionToolbarProps) {
  const t = useMessages(organizingMessages);
  const ids = useSelecting(({ selection }) => selection.ids);
  const selected = conversations.filter((one) => ids.has(one.conversation_id));
  const none = selected.length === 0;
  const count = t("pages.selection.count", { count: selected.length });
  // A screen reader announces a text that changes in its region, and not one that appears with it.
  const [announced, announce] = useState("");
  useEffect(() => announce(count), [count]);
  useEscape(list);
  return (
    <div
      role="group"
      aria-label={t("pages.selection.label")}
      data-list-toolbar={list}
      className="flex flex-wrap items-center gap-0.5 px-2 py-1"
    >
      <IconButton icon="close" label={t("pages.selection.end")} onClick={() => stopSelecting(list)} />
      <span role="status" className="px-1 text-sm font-medium">
        {announced}
      </span>
      <span className="ms-auto flex gap-0.5">
        {list === "sidebar" ? (
          <>
            <IconButton
              icon="archive"
              label={t("pages.archive.do")}
              disabled={none}
              onClick={() => void archiveSelected(selected, t)}
            />
            <IconButton
              icon="folder"
              label={t("pages.move.do")}
              disabled={none}
              onClick={() => useMoving.setState({ conversations: selected })}
            />
          </>
        ) : (
          <IconButton
            icon="undo"
            label={t("pages.archive.restore")}
            disabled={none}
            onClick={() => void restoreSelected(selected, t)}
          />
        )}
        <IconButton
          icon="trash"
          label={t("pages.delete.do")}
          disabled={none}
          data-delete-selected=""
          onClick={() => confirmDeletion(...selected)}
        />
      </span>
    </div>
  );
}

/**
 * Escape ends the selection if the focus is in the list, in its toolbar or nowhere. The listener runs before the one that
 * stops an answer.
 */
function useEscape(list: ListName): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
      const target = event.target instanceof Element ? event.target : null;
      const own = target?.closest(`[data-list="${list}"], [data-list-toolbar="${list}"]`) ?? null;
      if (target?.matches("input") || (own === null && target !== document.body)) return;
      event.preventDefault();
      stopSelecting(list);
    };
    document.addEventListener("keydown", pressed, true);
    return () => document.removeEventListener("keydown", pressed, true);
  }, [list]);
}
