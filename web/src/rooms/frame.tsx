// The frame of every room: the sidebar, the head with the title, and what is the same everywhere.
import { useQuery } from "@tanstack/react-query";
import { useLocation, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useState, type ReactNode } from "react";
import { conversationQuery } from "../api/queries";
import { wishFocus } from "../composer/wishes";
import { useDevice } from "../controls/device";
import { useMedia } from "../controls/media";
import { Toasts } from "../controls/toast";
import { Keys } from "../keys/listen";
import { useDeletion, useSendWhenHidden } from "../sidebar/deletion";
import { Sidebar } from "../sidebar/sidebar";
import { useSpeech } from "../words/speech";
import { Head } from "./head";
import { useUnsent } from "./sign-out";
import { Badge, RoomTitle } from "./title";
import { useTurnedAway } from "./turned-away";

// What is in front of the room is loaded when it is first wanted.
const Drawer = lazy(() => import("../sidebar/drawer").then((m) => ({ default: m.Drawer })));
const Deletions = lazy(() => import("../sidebar/deletion-dialogs").then((m) => ({ default: m.Deletions })));
const SignOutQuestion = lazy(() => import("./sign-out-question").then((m) => ({ default: m.SignOutQuestion })));

export function Frame({ children }: { children: ReactNode }) {
  const { say } = useSpeech();
  const id = useParams({ strict: false }).conversation ?? null;
  const path = useLocation({ select: ({ pathname }) => pathname });
  const wide = useMedia("(min-width: 48rem)");
  const beside = useDevice((device) => device.sidebar);
  const [drawer, setDrawer] = useState(false);
  const deleting = useDeletion((deletion) => deletion.asked !== null || deletion.confirm !== null);
  const unsent = useUnsent(({ count }) => count > 0);
  useSendWhenHidden();
  useTurnedAway();
  const navigate = useNavigate();
  const { data: page } = useQuery({ ...conversationQuery(id ?? ""), enabled: false });
  const shown = wide ? beside : drawer;
  const show = useCallback(
    (wanted: boolean) => {
      if (wide) useDevice.setState({ sidebar: wanted });
      else setDrawer(wanted);
      // The button that was pressed goes; the one that undoes it takes the focus.
      requestAnimationFrame(() => document.activeElement === document.body && document.querySelector<HTMLElement>("[data-sidebar-toggle]")?.focus());
    },
    [wide],
  );
  const close = useCallback(() => setDrawer(false), []);
  useEffect(close, [path, close]);
  const sidebar = { current: id, onHide: () => show(false), onOpen: close };
  return (
    <div className="flex h-dvh">
      <a href="#main" className="fixed start-2 top-2 z-50 -translate-y-20 rounded-md bg-tide px-4 py-2 text-sm text-tide-ink focus:translate-y-0" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        {say("rooms.skip")}
      </a>
      {shown && wide && <Sidebar {...sidebar} />}
      <Suspense>
        {shown && !wide && <Drawer {...sidebar} />}
        {deleting && <Deletions />}
        {unsent && <SignOutQuestion />}
      </Suspense>
      <main id="main" tabIndex={-1} className="flex min-w-0 grow flex-col pe-[env(safe-area-inset-right)] outline-none">
        <Head page={id === null ? undefined : page} id={id} onShow={wide && shown ? null : () => show(true)} />
        <div className="relative flex min-h-0 grow flex-col short:overflow-y-auto">{children}</div>
      </main>
      {(path === "/" || id !== null) && <RoomTitle {...(page === undefined || id === null ? {} : { name: page.title || say("rooms.untitled") })} />}
      <Badge />
      <Keys onNew={() => void navigate({ to: "/" }).then(wishFocus)} onSidebar={() => show(!shown)} />
      <Toasts />
    </div>
  );
}
