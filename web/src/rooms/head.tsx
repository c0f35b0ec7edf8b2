// The head of a room: the way to the sidebar, the conversation's title, and its menu.
import { Link } from "@tanstack/react-router";
import type { ConversationPage } from "../api/client";
import { IconButton } from "../controls/button";
import { Icon } from "../controls/icon";
import { Menu, MenuItem } from "../controls/menu";
import { keysOf } from "../keys/keys";
import { askToDelete } from "../sidebar/deletion";
import { edit, TitleEditor, useEditing } from "../sidebar/rename";
import { useSpeech } from "../words/speech";

interface HeadProps {
  id: string | null;
  page: ConversationPage | undefined;
  /** Shows the sidebar; null while it stands beside. */
  onShow: (() => void) | null;
}

export function Head({ id, page, onShow }: HeadProps) {
  const { say } = useSpeech();
  return (
    <div className="flex min-h-13 shrink-0 items-center gap-1 px-2 pt-[env(safe-area-inset-top)] ps-[max(0.5rem,env(safe-area-inset-left))]">
      {onShow !== null && (
        <>
          <IconButton data-sidebar-toggle="" icon="panel" mirrored label={say("rooms.sidebar.show")} keys={keysOf("sidebar")} aria-expanded={false} onClick={onShow} />
          <Link to="/" aria-label={say("rooms.new")} title={`${say("rooms.new")} (${keysOf("new")})`} className="inline-flex size-9 shrink-0 max-md:order-last max-md:ms-auto items-center justify-center rounded-md text-soft hover:bg-hover hover:text-ink pointer-coarse:size-11">
            <Icon name="add" />
          </Link>
        </>
      )}
      {id !== null && page !== undefined && <Title page={page} />}
    </div>
  );
}

function Title({ page }: { page: ConversationPage }) {
  const { say } = useSpeech();
  const edited = useEditing((editing) => editing.id === page.conversation_id && editing.place === "head");
  const title = page.title || say("rooms.untitled");
  if (edited) return <TitleEditor conversation={page} className="h-9 max-w-lg" onDone={(byKey) => byKey && requestAnimationFrame(() => document.getElementById("conversation-menu")?.focus())} />;
  return (
    <>
      <h1 dir="auto" className="min-w-0 truncate [text-align:match-parent] px-1.5 text-sm font-medium text-soft">
        {title}
      </h1>
      <Menu trigger={<IconButton id="conversation-menu" icon="chevronDown" size="small" label={say("rooms.head.menu")} />}>
        <MenuItem icon="edit" onSelect={() => edit(page.conversation_id, "head")}>
          {say("rooms.rename.do")}
        </MenuItem>
        <MenuItem icon="trash" danger onSelect={() => askToDelete(page)}>
          {say("rooms.delete.do")}
        </MenuItem>
      </Menu>
    </>
  );
}
