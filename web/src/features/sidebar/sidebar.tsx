// The sidebar, next to the page if the window has space for it.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import mark from "../../style/mark.svg";
import { deferred } from "../../controls/deferred";
import { IconButton } from "../../controls/button";
import { Icon, type IconName } from "../../controls/icon";
import { requestAction, keysOf } from "../../keys/keys";
import { useLocalization } from "../../messages/localization";
import { AccountMenu } from "./account-menu";
import { Conversations } from "./conversation-list";
import { Projects } from "../projects";
import { useApprovals } from "../../turn/use-approvals";

// Mostly, no call waits.
const Approvals = deferred(() => import("./approvals").then((m) => m.Approvals), { onFailure: () => {} });

export interface SidebarProps {
  current: string | null;
  onHide: () => void;
  /** Called when a page is opened from the sidebar. */
  onOpen: () => void;
}

export function Sidebar(props: SidebarProps) {
  return (
    <div
      id="sidebar"
      className="flex h-full w-70 shrink-0 flex-col bg-sidebar short:overflow-y-auto ps-[env(safe-area-inset-left)]"
    >
      <Content {...props} />
    </div>
  );
}

export function Content({ current, onHide, onOpen }: SidebarProps) {
  const { t } = useLocalization();
  const waiting = useApprovals();
  return (
    <nav aria-label={t("pages.sidebar")} className="flex min-h-0 grow flex-col short:shrink-0">
      <div className="flex items-center justify-between gap-2 px-2 pt-[max(0.5rem,env(safe-area-inset-top))]">
        <Link
          to="/"
          onClick={onOpen}
          className="flex min-h-9 items-center gap-2 rounded-md px-2.5 text-sm font-semibold"
        >
          <img src={mark} alt="" className="size-5" />
          {t("app.name")}
        </Link>
        <IconButton
          data-sidebar-toggle=""
          icon="panel"
          mirrored
          label={t("pages.sidebar.hide")}
          keys={keysOf("sidebar")}
          aria-expanded
          aria-controls="sidebar"
          onClick={onHide}
        />
      </div>
      <div className="flex flex-col gap-0.5 px-2 pt-2 pb-1">
        <Link to="/" onClick={onOpen} data-tooltip={t("pages.new")} data-keys={keysOf("new")} className={entry}>
          <Label icon="add">{t("pages.new")}</Label>
        </Link>
        <button
          type="button"
          data-tooltip={t("pages.palette.open")}
          data-keys={keysOf("palette")}
          className={entry}
          onClick={() => requestAction("palette")}
        >
          <Label icon="search">{t("pages.palette.open")}</Label>
        </button>
        <Link to="/library" onClick={onOpen} activeProps={{ className: "bg-hover font-medium" }} className={entry}>
          <Label icon="file">{t("library.title")}</Label>
        </Link>
        {waiting !== undefined && waiting.data.length > 0 && <Approvals waiting={waiting} onOpen={onOpen} />}
      </div>
      <Projects onOpen={onOpen} />
      <Conversations current={current} onOpen={onOpen} />
      <div className="mt-auto px-2 py-2">
        <AccountMenu onOpen={onOpen} />
      </div>
    </nav>
  );
}

const entry =
  "flex min-h-9 w-full items-center gap-2.5 rounded-md px-2.5 text-start text-sm hover:bg-hover pointer-coarse:min-h-11";

function Label({ icon, children }: { icon: IconName; children: ReactNode }) {
  return (
    <>
      <Icon name={icon} size={16} />
      {children}
    </>
  );
}
