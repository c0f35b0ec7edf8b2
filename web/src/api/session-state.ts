// Tracks whether the session is valid. A request that is refused with 401 marks it as lost; a sign-in restores it.
import { create } from "zustand";
import { fetchSession, forgetToken, isOutdated, type SessionInfo } from "./client";
import { Refusal } from "./problem";
import { invalidateAll, queryClient, sessionQuery } from "./queries";

export const useSessionState = create<{ lost: boolean }>(() => ({ lost: false }));

let channel: BroadcastChannel | null = null;
const listeners = new Set<() => void>();
const leavingListeners = new Set<() => void>();
const signOutListeners = new Set<() => void>();
let signedOut = false;

/** Calls listener after each sign-in of this account, in every tab. */
export const onSignIn = (listener: () => void): void => void listeners.add(listener);

/** Calls listener when the user signs out in another tab, before the account has signed out. Returns a function that ends that. */
export function onLeaving(listener: () => void): () => void {
  leavingListeners.add(listener);
  return () => void leavingListeners.delete(listener);
}

/** Tells the other tabs that the user signs out, so that they send what waits. */
export const announceSignOut = (): void => channel?.postMessage("leaving");

/** Calls listener in every tab after the account has signed out, before the page is left. */
export const onSignOut = (listener: () => void): void => void signOutListeners.add(listener);

/**
 * Returns a listener to "beforeunload" that makes the browser ask before it closes the page. Not after a sign-out: nothing can be stored
 * then, and the page is left.
 */
export const newUnloadGuard =
  () =>
  (event: Event): void => {
    if (!signedOut) event.preventDefault();
  };

/** Starts to track the session: in the responses to all requests, and in the other tabs. */
export function startSessionState(): void {
  channel = new BroadcastChannel("turnstone-access");
  channel.onmessage = ({ data }: MessageEvent<"entered" | "leaving" | "left">) => {
    if (data === "leaving") leavingListeners.forEach((listener) => listener());
    else if (data === "left") leave(() => location.assign("/"));
    else
      void fetchSession().then(
        (session) => applySession(session),
        () => {},
      );
  };
  queryClient.getQueryCache().config.onError = noticeSignOut;
  queryClient.getMutationCache().config.onError = noticeSignOut;
}

/**
 * Marks the session as lost if the error is a 401, unless the user has signed in since the request was sent. Called for
 * the error of every request. Returns whether the session is lost.
 */
export function noticeSignOut(error: unknown): boolean {
  if (!(error instanceof Refusal) || error.status !== 401 || isOutdated(error)) return false;
  if (queryClient.getQueryData(sessionQuery.queryKey) === undefined) return false;
  useSessionState.setState({ lost: true });
  return true;
}

/** Asks the service whether the session is lost, after another tab has reported it: that tab may not know of a sign-in. */
export const checkSession = (): Promise<unknown> => fetchSession().catch(noticeSignOut);

/** Continues after a sign-in, in every tab. If another account signed in, the page is reloaded without old state. */
export function handleSignIn(session: SessionInfo): void {
  applySession(session);
  channel?.postMessage("entered");
}

function applySession(session: SessionInfo): void {
  const before = queryClient.getQueryData(sessionQuery.queryKey);
  if (before !== undefined && before.account.account_id !== session.account.account_id) {
    location.assign("/");
    return;
  }
  forgetToken();
  queryClient.setQueryData(sessionQuery.queryKey, session);
  useSessionState.setState({ lost: false });
  if (before !== undefined) void invalidateAll();
  listeners.forEach((listener) => listener());
}

/** Leaves the pages of the account in every tab, after it has signed out. load loads the next page of this tab. */
export function handleSignOut(load = () => location.assign("/")): void {
  channel?.postMessage("left");
  leave(load);
}

function leave(load: () => void): void {
  signedOut = true;
  signOutListeners.forEach((listener) => listener());
  load();
}
