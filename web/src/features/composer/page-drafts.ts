// The drafts of this page. They are saved when the page is hidden or left, when the network or the session is back, and after
// a message was sent.
import { useStore } from "zustand";
import { onAttach, onUpload } from "../../api/attachments";
import { api, body, Refusal, send, type Draft } from "../../api/client";
import { onMessageSettled, useOutbox } from "../../api/outbox";
import { alreadyExists, type Created, creationBody, placementOf } from "../../api/outbox-message";
import { projectChanged } from "../../api/projects";
import { cacheDraft, conversationQuery, queryClient, refetchInAllTabs, sessionQuery } from "../../api/queries";
import { noticeSignOut, useSessionState } from "../../api/session-state";
import { Drafts, type DraftsState } from "./drafts";

export const drafts = new Drafts({
  put: (id, draft) =>
    body(api.PUT("/conversations/{conversation_id}/draft", { params: { path: { conversation_id: id } }, body: draft })),
  putBeforeClose: async (id, draft, keepalive) => {
    const headers = { "Content-Type": "application/json" };
    const path = new URL(`/conversations/${id}/draft`, location.origin);
    const response = await send(new Request(path, { method: "PUT", keepalive, headers, body: JSON.stringify(draft) }));
    return response.ok ? ((await response.json()) as Draft) : null;
  },
  create: async (id, fresh) => {
    const path = { conversation_id: id };
    let created: Created;
    try {
      created = await body(
        api.PUT("/conversations/{conversation_id}", { params: { path }, body: creationBody(fresh) }),
      );
    } catch (error) {
      if (!(error instanceof Refusal) || !alreadyExists(error, fresh)) throw error;
      created = error.problem?.current as Created;
    }
    const placement = placementOf(fresh, created);
    if (placement !== null) {
      const { header, body } = placement;
      await api.PUT("/conversations/{conversation_id}/project", { params: { path, header }, body });
      projectChanged();
    }
    // That it did not exist may be known, and shown.
    const predicate = ({ state }: { state: { status: string } }) => state.status === "error";
    void queryClient.resetQueries({ queryKey: conversationQuery(id).queryKey, exact: true, predicate });
    void refetchInAllTabs("conversations");
  },
  load: async (id, staleTime) =>
    (await queryClient.fetchQuery({ ...conversationQuery(id), ...(staleTime === undefined ? {} : { staleTime }) }))
      .draft,
  saved: cacheDraft,
  noticeSignOut,
  isSignedOut: () => useSessionState.getState().lost,
  account: () => queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? "",
  outbox: () => useOutbox.getState().list,
  copies: localStorage,
  locks: navigator.locks,
});

export const useDrafts = <T>(select: (state: DraftsState) => T): T => useStore(drafts.state, select);

/** Writes a text into the composer of a conversation, after the text that is already there. */
export const addToDraft = (id: string, text: string): void => drafts.restoreText(id, text);

/** Starts to save the drafts. */
export function startDrafts(): void {
  const saveBeforeClose = () => drafts.saveBeforeClose();
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && saveBeforeClose());
  window.addEventListener("pagehide", saveBeforeClose);
  const saveAll = (all: object) => Object.keys(all).forEach((id) => drafts.save(id));
  window.addEventListener("online", () => saveAll(drafts.state.getState().unsaved));
  useSessionState.subscribe(({ lost }, before) => before.lost && !lost && saveAll(drafts.state.getState().byID));
  useOutbox.subscribe(({ loaded }, before) => loaded && !before.loaded && drafts.addSentMessages());
  onMessageSettled((...end) => drafts.settle(...end));
  onAttach((id, files) => drafts.attach(id, files));
  onUpload((id) => drafts.conversationOfUpload(id));
}
