// The conversation that the composer writes to: an existing one, or the future one of a new chat.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { ConversationPage } from "../../api/client";
import { useOutbox } from "../../api/outbox";
import { conversationQuery, queryClient } from "../../api/queries";
import { emptyDraft, type DraftState } from "./draft";
import { drafts, useDrafts } from "./page-drafts";
import { creationOf, endNewChat, newChat, storeNewChat, type NewChat } from "./new-chat";

export interface Chat {
  id: string;
  page: ConversationPage | undefined;
  draft: DraftState;
  /** The new chat; null for an existing conversation. */
  fresh: NewChat | null;
  /** The project on whose page it is written; undefined: it is written on its own page. */
  project: string | undefined;
  change(fresh: NewChat): void;
}

export function useChat(
  conversationID: string | null,
  page: ConversationPage | undefined,
  project: string | undefined,
): Chat {
  const [opened, setOpened] = useState(() => (conversationID === null ? newChat(project) : null));
  const fresh = conversationID === null ? opened : null;
  const id = conversationID ?? opened!.id;
  const loaded = useOutbox((messages) => messages.loaded);
  const draft = useDrafts(({ byID }) => byID[id] ?? emptyDraft);
  useEffect(() => drafts.open(id, fresh === null ? undefined : creationOf(fresh)), [id, fresh]);
  useEffect(() => {
    if (loaded) void drafts.saveAbandoned();
  }, [loaded]);
  const kept = page?.draft;
  useEffect(() => {
    if (loaded && kept !== undefined) drafts.applyServiceDraft(id, kept);
  }, [id, loaded, kept]);
  useMoveToConversation(fresh === null || project !== undefined ? null : id, draft);
  const change = (next: NewChat) => {
    setOpened(storeNewChat(next));
    drafts.open(id, creationOf(next)); // before the next request that creates the conversation
  };
  return { id, page, draft, fresh, project, change };
}

/** Returns whether the service has the conversation of the new chat of a project. */
export function useStoredDraft(id: string, project: string): boolean {
  const saved = useDrafts(({ byID }) => (byID[id]?.base?.version ?? -1) >= 0);
  const [known] = useState(() => ({ id, stored: newChat(project).stored === true }));
  useEffect(() => {
    if (saved) storeNewChat({ ...newChat(project), stored: true });
  }, [saved, project]);
  return saved || (known.id === id && known.stored);
}

/** How long the page waits for the data of a new conversation before it shows that they are loading, in milliseconds. */
const longestWait = 5_000;

/** Once the draft of a new chat is on the service, replaces the address of the new chat by that of the conversation. */
function useMoveToConversation(fresh: string | null, draft: DraftState): void {
  const navigate = useNavigate();
  const onService = draft.base !== null && draft.base.version >= 0;
  const moving = useRef(false);
  useEffect(() => {
    if (fresh === null || !onService || moving.current) return;
    moving.current = true;
    const move = async () => {
      const loaded = queryClient.fetchQuery(conversationQuery(fresh)).catch(() => {});
      await Promise.race([loaded, new Promise((resolve) => setTimeout(resolve, longestWait))]);
      endNewChat(fresh);
      if (location.pathname !== "/") return; // another page was opened meanwhile
      void navigate({ to: "/c/$conversation", params: { conversation: fresh }, replace: true });
    };
    void move();
  }, [fresh, onService, navigate]);
}
