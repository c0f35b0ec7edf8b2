// The app: who is signed in, in which language and look, and which room is shown.
import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, RouterProvider } from "@tanstack/react-router";
import { lazy, Suspense, useRef, type ReactNode } from "react";
import { Refusal } from "./api/client";
import { queryClient, sessionQuery } from "./api/queries";
import { useAccess } from "./api/access";
import { Frame } from "./rooms/frame";
import { ConversationRoom } from "./rooms/conversation";
import { Failed, Guard } from "./rooms/failed";
import { Unreachable } from "./rooms/unreachable";
import { Speech } from "./words/speech";
import { Look } from "./style/look";

const SignIn = lazy(() => import("./rooms/sign-in").then((m) => ({ default: m.SignIn })));
const SignInAgain = lazy(() => import("./rooms/sign-in-again").then((m) => ({ default: m.SignInAgain })));

const root = createRootRoute({ component: () => <Frame><Outlet /></Frame>, notFoundComponent: lazyRouteComponent(() => import("./rooms/not-found"), "NotFound") });
const start = createRoute({ getParentRoute: () => root, path: "/", component: () => <ConversationRoom id={null} /> });
const conversation = createRoute({ getParentRoute: () => root, path: "/c/$conversation", component: Conversation });
const settings = createRoute({ getParentRoute: () => root, path: "/settings", component: lazyRouteComponent(() => import("./rooms/settings"), "SettingsRoom") });

function Conversation() {
  const { conversation: id } = conversation.useParams();
  return <ConversationRoom key={id} id={id} />;
}

const router = createRouter({ routeTree: root.addChildren([start, conversation, settings]), scrollRestoration: false, defaultErrorComponent: Failed });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      <Speech>
        <Look />
        <Guard>
          <Suspense>
            <Door>
              <RouterProvider router={router} />
            </Door>
          </Suspense>
        </Guard>
      </Speech>
    </QueryClientProvider>
  );
}

/** Asks at once who is signed in, also while the next try is waited for. */
const askAgain = (): void => void queryClient.cancelQueries({ queryKey: sessionQuery.queryKey }).then(() => queryClient.refetchQueries({ queryKey: sessionQuery.queryKey }));

/** Lets in who is signed in. A session that ends later is renewed in place: the room stays as it is, and what was typed. */
function Door({ children }: { children: ReactNode }) {
  const session = useQuery(sessionQuery);
  const lost = useAccess((access) => access.lost);
  // Stands while it is asked again: what is shown about it does not come and go.
  const failure = useRef<unknown>(null);
  failure.current = session.failureReason ?? failure.current;
  if (session.data === undefined) {
    if (session.error instanceof Refusal && session.error.status === 401) return <SignIn />;
    // Told from the first failure on: the query tries again for a while before it gives up.
    if (failure.current !== null) return <Unreachable refusal={failure.current} again={askAgain} />;
    return null;
  }
  return (
    <>
      {children}
      {lost && (
        <Suspense>
          <SignInAgain email={session.data.account.email} />
        </Suspense>
      )}
    </>
  );
}
