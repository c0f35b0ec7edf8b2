// Whether the session is still there. Any request that is refused with 401 says that it is not; a sign-in says that it is.
import { create } from "zustand";
import { followAgain } from "../turn/live";
import { askSession, forgetToken, type SessionInfo } from "./client";
import { Refusal } from "./problem";
import { queryClient, sessionQuery } from "./queries";

export const useAccess = create<{ lost: boolean }>(() => ({ lost: false }));

const between = new BroadcastChannel("turnstone-access");
between.onmessage = ({ data }: MessageEvent<"entered" | "left">) => {
  if (data === "left") location.assign("/");
  else void askSession().then((session) => welcome(session), () => {});
};

/** Looks at every refusal of a request. */
export function notice(error: unknown): void {
  if (error instanceof Refusal && error.status === 401 && queryClient.getQueryData(sessionQuery.queryKey) !== undefined) useAccess.setState({ lost: true });
}

queryClient.getQueryCache().config.onError = notice;
queryClient.getMutationCache().config.onError = notice;

/** Goes on after a sign-in, in every tab. Another account starts with nothing of the one before. */
export function enter(session: SessionInfo): void {
  welcome(session);
  between.postMessage("entered");
}

function welcome(session: SessionInfo): void {
  const before = queryClient.getQueryData(sessionQuery.queryKey);
  if (before !== undefined && before.account.account_id !== session.account.account_id) {
    location.assign("/");
    return;
  }
  forgetToken();
  queryClient.setQueryData(sessionQuery.queryKey, session);
  useAccess.setState({ lost: false });
  if (before !== undefined) void queryClient.invalidateQueries();
  followAgain();
}

/** Leaves, in every tab. */
export function leave(): void {
  between.postMessage("left");
  location.assign("/");
}
