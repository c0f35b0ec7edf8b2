// The root component: providers, the check of the session, and the routes to the pages.
import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  RouterProvider,
} from "@tanstack/react-router";
import { useRef, useState, type ReactNode } from "react";
import { Refusal } from "./api/client";
import { queryClient, sessionQuery } from "./api/queries";
import { useSessionState } from "./api/session-state";
import { AppLayout } from "./layout/app-layout";
import { ConversationRoute } from "./features/conversation";
import { LibraryPage } from "./features/files";
import { ProjectPage } from "./features/projects";
import { SettingsPage } from "./features/settings";
import { ErrorPage, ErrorBoundary } from "./layout/error-page";
import { mailPageOf, mailPages, SignIn, SignInAgain } from "./features/sign-in";
import { Unreachable } from "./layout/unreachable";
import { Localization } from "./messages/localization";
import { ThemeEffect } from "./style/theme";

const root = createRootRoute({
  component: () => (
    <AppLayout>
      <Outlet />
    </AppLayout>
  ),
  notFoundComponent: lazyRouteComponent(() => import("./controls/not-found"), "UnknownPath"),
});
// One component for both paths, so that a new chat that gets an address is not rendered anew.
const chat = createRoute({ getParentRoute: () => root, id: "chat", component: ConversationRoute });
const start = createRoute({ getParentRoute: () => chat, path: "/" });
const conversation = createRoute({
  getParentRoute: () => chat,
  path: "/c/$conversation",
  // The artifact that the panel beside the conversation shows.
  validateSearch: ({ artifact }: Record<string, unknown>): { artifact?: string } =>
    typeof artifact === "string" ? { artifact } : {},
});
const project = createRoute({
  getParentRoute: () => root,
  path: "/p/$project",
  component: ProjectPage,
});
const library = createRoute({
  getParentRoute: () => root,
  path: "/library",
  component: LibraryPage,
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: SettingsPage,
});

const router = createRouter({
  routeTree: root.addChildren([chat.addChildren([start, conversation]), project, library, settings]),
  scrollRestoration: false,
  defaultErrorComponent: ErrorPage,
});

// The page was loaded again with something in front of it, which is closed now.
if ((history.state as { inFront?: number } | null)?.inFront)
  import("./controls/back").then(
    ({ followBack }) => followBack(router.history),
    () => {}, // loading failed: Back leads to the same page once
  );

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      <Localization>
        <ThemeEffect />
        <ErrorBoundary>
          <Page />
        </ErrorBoundary>
      </Localization>
    </QueryClientProvider>
  );
}

/** The page of the URL. Those of the links in mails need no session. They are left by loading another page. */
function Page() {
  const [mailPage] = useState(() => mailPageOf(location.pathname));
  if (mailPage !== null) {
    const MailPage = mailPages[mailPage];
    return <MailPage />;
  }
  return (
    <SessionGate>
      <RouterProvider router={router} />
    </SessionGate>
  );
}

/** Fetches the session now, even while the query waits for its next retry. */
const refetchSession = (): void =>
  void queryClient
    .cancelQueries({ queryKey: sessionQuery.queryKey })
    .then(() => queryClient.refetchQueries({ queryKey: sessionQuery.queryKey }));

/**
 * Shows its children once an account is signed in. If the session ends later, the user signs in again in a dialog: the
 * page and the typed text stay as they are.
 */
function SessionGate({ children }: { children: ReactNode }) {
  const session = useQuery(sessionQuery);
  const lost = useSessionState((access) => access.lost);
  // The last failure. It stays set during a retry, so that the error page does not disappear and reappear.
  const failure = useRef<unknown>(null);
  failure.current = session.failureReason ?? failure.current;
  if (session.data === undefined) {
    if (session.error instanceof Refusal && session.error.status === 401) return <SignIn />;
    // Shown from the first failure on: the query retries for a while before it reports an error.
    if (failure.current !== null) return <Unreachable refusal={failure.current} again={refetchSession} />;
    return null;
  }
  return (
    <>
      {children}
      {lost && <SignInAgain email={session.data.account.email} />}
    </>
  );
}
