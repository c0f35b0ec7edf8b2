// The frame of every page: the sidebar, the header with the title, and the parts that all pages share.
import { useLocation, useNavigate, useParams } from "@tanstack/react-router";
import { useCallback, useEffect, useState, type ReactNode } from "react";
import { useFileView } from "../controls/viewed-file";
import { focusComposer } from "../features/composer";
import { useDevice } from "../controls/device";
import { useNoteShown } from "../controls/later";
import { useMedia } from "../controls/media";
import { Toasts } from "../controls/toast";
import { Shortcuts } from "./shortcuts";
import { useSwipe } from "./use-swipe";
import { BranchesDialog, useBranching } from "../features/conversation";
import {
  AnswerNotifications,
  ApprovalNotifications,
  DeletionDialogs,
  Drawer,
  MoveDialog,
  Sidebar,
  SignOutDialog,
  useDeletion,
  useMoving,
  useSendWhenLeft,
  isUnsent,
  useUnsent,
} from "../features/sidebar";
import { useKnownConversation } from "../api/known-conversation";
import { ResearchNotifications } from "../features/research";
import { ShareDialog, useSharing } from "../features/sharing";
import { useLocalization } from "../messages/localization";
import { FileView } from "../features/files";
import { Header } from "./header";
import { UnreadIcon, PageTitle } from "../controls/page-title";
import { useShownConversation } from "../controls/shown-conversation";
import { useProviderFailureToast } from "../features/sign-in";

export function AppLayout({ children }: { children: ReactNode }) {
  const { t } = useLocalization();
  const id = useParams({ strict: false }).conversation ?? null;
  useShownConversation(id);
  const path = useLocation({ select: ({ pathname }) => pathname });
  useNoteShown(path !== "/" && id === null); // a chat notes it by itself, once its messages are shown
  const wide = useMedia("(min-width: 48rem)");
  const docked = useDevice((device) => device.sidebar);
  const notify = useDevice((device) => device.notify);
  const [drawer, setDrawer] = useState(false);
  const deleting = useDeletion((deletion) => deletion.confirming.length > 0 || deletion.serverConfirmations.length > 0);
  const unsent = useUnsent(isUnsent);
  const moving = useMoving((move) => move.conversations.length > 0);
  const sharing = useSharing((share) => share.conversation !== null);
  const branching = useBranching((branches) => branches.conversation !== null);
  const viewing = useFileView(({ file }) => file !== null);
  useSendWhenLeft();
  useProviderFailureToast();
  const navigate = useNavigate();
  const conversation = useKnownConversation(id);
  const shown = wide ? docked : drawer;
  const show = useCallback(
    (wanted: boolean) => {
      if (wide) useDevice.setState({ sidebar: wanted });
      else setDrawer(wanted);
      // The pressed button is removed; the button that reverses it takes the focus.
      requestAnimationFrame(
        () =>
          document.activeElement === document.body &&
          document.querySelector<HTMLElement>("[data-sidebar-toggle]")?.focus(),
      );
    },
    [wide],
  );
  const close = useCallback(() => setDrawer(false), []);
  useEffect(close, [path, close]);
  useSwipe(wide ? null : setDrawer);
  const sidebar = { current: id, onHide: () => show(false), onOpen: close };
  return (
    <div className="flex h-dvh">
      <a
        href="#main"
        className="fixed start-2 top-2 z-50 -translate-y-20 rounded-md bg-accent px-4 py-2 text-sm text-accent-ink focus:translate-y-0"
        onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}
      >
        {t("pages.skip")}
      </a>
      {shown && wide && <Sidebar {...sidebar} />}
      {shown && !wide && <Drawer {...sidebar} />}
      {deleting && <DeletionDialogs />}
      {moving && <MoveDialog />}
      {sharing && <ShareDialog />}
      {branching && <BranchesDialog />}
      {viewing && <FileView />}
      {unsent && <SignOutDialog />}
      <main id="main" tabIndex={-1} className="flex min-w-0 grow flex-col pe-[env(safe-area-inset-right)] outline-none">
        <Header conversation={conversation} onShow={wide && shown ? null : () => show(true)} />
        <div className="relative flex min-h-0 grow flex-col short:overflow-y-auto">{children}</div>
      </main>
      {path === "/" && <PageTitle />}
      {conversation !== undefined && <PageTitle name={conversation.title || t("pages.untitled")} />}
      <UnreadIcon />
      {notify && <AnswerNotifications />}
      {notify && <ApprovalNotifications />}
      {notify && <ResearchNotifications />}
      <Shortcuts onNew={() => void navigate({ to: "/" }).then(focusComposer)} onSidebar={() => show(!shown)} />
      <Toasts />
    </div>
  );
}
