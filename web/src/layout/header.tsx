// The header of a page: the button that shows the sidebar, and the title and menu of the conversation.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Conversation } from "../api/client";
import { projectQuery } from "../api/projects";
import { IconButton } from "../controls/button";
import { Icon, type IconName } from "../controls/icon";
import { useLater } from "../controls/later";
import { Menu, MenuItem } from "../controls/menu";
import { keysOf } from "../keys/keys";
import { ArtifactsButton } from "../features/artifacts";
import { confirmDeletion, editTitle, PlacementItems, TitleEditor, useEditing } from "../features/sidebar";
import { isStored, isUnsent } from "../api/provisional";
import { useLocalization } from "../messages/localization";

interface HeaderProps {
  /** The open conversation, if there is one and it is known. */
  conversation: Conversation | undefined;
  /** Shows the sidebar; null while it is displayed next to the page. */
  onShow: (() => void) | null;
}

export function Header({ conversation, onShow }: HeaderProps) {
  const { t } = useLocalization();
  const later = useLater();
  return (
    <div className="flex min-h-13 shrink-0 items-center gap-1 px-2 pt-[env(safe-area-inset-top)] ps-[max(0.5rem,env(safe-area-inset-left))]">
      {onShow !== null && (
        <>
          <IconButton
            data-sidebar-toggle=""
            icon="panel"
            mirrored
            label={t("pages.sidebar.show")}
            keys={keysOf("sidebar")}
            aria-expanded={false}
            onClick={onShow}
          />
          <Link
            to="/"
            aria-label={t("pages.new")}
            data-tooltip={t("pages.new")}
            data-keys={keysOf("new")}
            className="inline-flex size-9 shrink-0 max-md:order-last max-md:ms-auto items-center justify-center rounded-md text-soft hover:bg-hover hover:text-ink pointer-coarse:size-11"
          >
            <Icon name="add" />
          </Link>
        </>
      )}
      {conversation !== undefined && !isUnsent(conversation) && <Title conversation={conversation} />}
      {later && conversation !== undefined && isStored(conversation) && (
        <ArtifactsButton key={conversation.conversation_id} conversation={conversation.conversation_id} />
      )}
    </div>
  );
}

function Title({ conversation }: { conversation: Conversation }) {
  const { t } = useLocalization();
  const edited = useEditing((editing) => editing.id === conversation.conversation_id && editing.place === "head");
  const title = conversation.title || t("pages.untitled");
  if (edited)
    return (
      <TitleEditor
        conversation={conversation}
        className="h-9 max-w-lg"
        onDone={(byKey) => byKey && requestAnimationFrame(() => document.getElementById("conversation-menu")?.focus())}
      />
    );
  return (
    <>
      {conversation.project_id !== null && <ProjectLink id={conversation.project_id} />}
      <h1 dir="auto" className="min-w-0 truncate text-as-parent px-1.5 text-sm font-medium text-soft">
        {title}
      </h1>
      {conversation.archived_at !== null && <Badge icon="archive">{t("pages.archive.state")}</Badge>}
      {conversation.temporary && <TemporaryBadge until={conversation.expires_at ?? null} />}
      {isStored(conversation) && (
        <Menu
          trigger={<IconButton id="conversation-menu" icon="chevronDown" size="small" label={t("pages.header.menu")} />}
          load={PlacementItems.preload}
        >
          <MenuItem icon="edit" onSelect={() => editTitle(conversation.conversation_id, "head")}>
            {t("pages.rename.do")}
          </MenuItem>
          <PlacementItems conversation={conversation} />
          <MenuItem icon="trash" danger onSelect={() => confirmDeletion(conversation)}>
            {t("pages.delete.do")}
          </MenuItem>
        </Menu>
      )}
    </>
  );
}

/** The project of a conversation, before its title. */
function ProjectLink({ id }: { id: string }) {
  const { data } = useQuery(projectQuery(id));
  return (
    data && (
      <>
        <Link
          to="/p/$project"
          params={{ project: id }}
          className="max-w-[40%] shrink-0 truncate rounded-sm max-md:max-w-1/4 px-1.5 py-1 text-sm text-faint hover:text-ink"
        >
          <bdi>{data.name}</bdi>
        </Link>
        <span aria-hidden="true" className="text-faint">
          /
        </span>
      </>
    )
  );
}

function Badge({ icon, children }: { icon: IconName; children: ReactNode }) {
  return (
    <span className="inline-flex shrink-0 items-center gap-1 rounded-sm bg-sunken px-1.5 py-0.5 text-xs text-soft">
      <Icon name={icon} size={14} />
      {children}
    </span>
  );
}

/** The badge of a temporary conversation: when it is erased, if the service has it. Small screens have a shorter text. */
function TemporaryBadge({ until }: { until: string | null }) {
  const { t, intl } = useLocalization();
  if (until === null) return <Badge icon="clock">{t("pages.temporary")}</Badge>;
  const when = intl.formatDate(until, { weekday: "short", hour: "numeric", minute: "2-digit" });
  return (
    <Badge icon="clock">
      <span className="max-sm:sr-only">{t("pages.temporary.until", { when })}</span>
      <span aria-hidden="true" className="sm:hidden">
        {t("pages.temporary.until.short", { when })}
      </span>
    </Badge>
  );
}
