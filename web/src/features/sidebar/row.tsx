// One conversation in the sidebar: a link to it with a menu, or a checkbox while several are being selected.
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { Conversation } from "../../api/client";
import { IconButton } from "../../controls/button";
import { Menu, MenuItem } from "../../controls/menu";
import { useLocalization } from "../../messages/localization";
import { confirmDeletion, useDeletion } from "./deletion";
import { editTitle, useEditing } from "./editing";
import { PlacementItems, TitleEditor } from "./organizing";
import { isStored, isUnsent } from "../../api/provisional";
import { select } from "./selecting";
import { SelectionRow } from "./selection-row";
import { ConversationState } from "./state";

interface RowProps {
  conversation: Conversation;
  current: boolean;
  /** Whether Tab stops at this row; arrow keys reach the others. */
  stop: boolean;
  /** Whether it is selected; null: none is being selected. */
  selected: boolean | null;
  onFocus: (id: string) => void;
  onOpen: () => void;
}

export const focusRow = (id: string) => document.querySelector<HTMLElement>(`[data-conversation="${id}"]`)?.focus();

/** Starts to select conversations with this one. Its checkbox takes the focus. */
function startAt(id: string): void {
  select("sidebar", id);
  requestAnimationFrame(() => focusRow(id));
}

export const Row = memo(function Row({ conversation, current, stop, selected, onFocus, onOpen }: RowProps) {
  const { t } = useLocalization();
  const id = conversation.conversation_id;
  const edited = useEditing((editing) => editing.id === id && editing.place === "row");
  const deleting = useDeletion((deletion) => deletion.pending.has(id));
  const unsent = isUnsent(conversation);
  const title = unsent ? t("pages.unsent") : conversation.title || t("pages.untitled");
  if (edited) {
    return (
      <div className="flex h-9 items-center pointer-coarse:h-11">
        <TitleEditor
          conversation={conversation}
          className="h-full"
          onDone={(byKey) => byKey && requestAnimationFrame(() => focusRow(id))}
        />
      </div>
    );
  }
  if (selected !== null) {
    return (
      <div
        className={`flex h-9 items-center rounded-md pointer-coarse:h-11 ${selected ? "bg-accent-wash" : "hover:bg-hover focus-within:bg-hover"}`}
      >
        <SelectionRow
          list="sidebar"
          conversation={conversation}
          selected={selected}
          disabled={deleting || !isStored(conversation)}
          stop={stop}
          onFocus={onFocus}
        >
          <ConversationState conversation={conversation} current={current} />
        </SelectionRow>
      </div>
    );
  }
  return (
    <div
      className={`group relative flex h-9 items-center rounded-md pointer-coarse:h-11 ${current ? "bg-hover" : "hover:bg-hover focus-within:bg-hover"}`}
    >
      <Link
        to="/c/$conversation"
        params={{ conversation: id }}
        data-conversation={id}
        tabIndex={stop ? 0 : -1}
        aria-current={current ? "page" : undefined}
        aria-disabled={deleting || undefined}
        onFocus={() => onFocus(id)}
        onClick={(event) => {
          const newTab = event.ctrlKey || event.metaKey; // the browser opens it
          if (deleting || (event.shiftKey && !newTab)) event.preventDefault();
          else if (!newTab) onOpen();
          if (event.shiftKey && !newTab && !deleting && isStored(conversation)) startAt(id);
        }}
        onDoubleClick={() => isStored(conversation) && editTitle(id, "row")}
        className={`flex h-full min-w-0 grow items-center gap-2 rounded-md ps-2.5 pe-2 text-sm group-hover:pe-8 group-focus-within:pe-8 pointer-coarse:pe-11 ${current ? "font-medium" : ""} ${deleting || unsent ? "text-faint" : ""}`}
      >
        <span className="flex min-w-0 grow">
          <span dir="auto" className={`truncate text-as-parent ${deleting ? "line-through" : ""}`}>
            {title}
          </span>
        </span>
        <ConversationState conversation={conversation} current={current} />
      </Link>
      <span
        hidden={deleting || !isStored(conversation)}
        className="absolute end-0.5 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 has-data-[state=open]:opacity-100 pointer-coarse:opacity-100"
      >
        <Menu
          align="end"
          trigger={
            <IconButton icon="dots" size="small" label={t("pages.row.menu", { title })} tabIndex={stop ? 0 : -1} />
          }
          load={PlacementItems.preload}
        >
          <MenuItem icon="edit" onSelect={() => editTitle(id, "row")}>
            {t("pages.rename.do")}
          </MenuItem>
          <PlacementItems conversation={conversation} />
          <MenuItem icon="check" onSelect={() => startAt(id)}>
            {t("pages.selection.do")}
          </MenuItem>
          <MenuItem icon="trash" danger onSelect={() => confirmDeletion(conversation)}>
            {t("pages.delete.do")}
          </MenuItem>
        </Menu>
      </span>
    </div>
  );
});
