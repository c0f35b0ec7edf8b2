// The conversation that the composer writes to: an existing one, or the future one of a new chat.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import type { ConversationPage } from "../api/client";
import { useOutbox } from "../api/outbox";
import { conversationQuery, queryClient } from "../api/queries";
import { emptyDraft, type DraftState } from "./draft";
import { applyServiceDraft, openDraft, saveAbandonedDrafts, useDrafts } from "./drafts";
import { endNewChat, newChat, storeNewChat, type NewChat } from "./new-chat";

export interface Chat {
  id: string;
  page: ConversationPage | undefined;
  draft: DraftState;
  /** The new chat; null for an existing conversation. */
  fresh: NewChat | null;
  change(fresh: NewChat): void;
}

export function useChat(
  conversationID: string | null,
  page: ConversationPage | undefined,
  field: RefObject<HTMLTextAreaElement | null>,
): Chat {
  const [fresh, setFresh] = useState(() => (conversationID === null ? newChat() : null));
  const id = conversationID ?? fresh!.id;
  const loaded = useOutbox((messages) => messages.loaded);
  const draft = useDrafts(({ byID }) => byID[id] ?? emptyDraft);
  useEffect(() => openDraft(id, fresh === null ? undefined : { profile: fresh.profile }), [id, fresh]);
  useEffect(() => {
    if (loaded) void saveAbandonedDrafts();
  }, [loaded]);
  const kept = page?.draft;
  useEffect(() => {
    if (loaded && kept !== undefined) applyServiceDraft(id, { content: kept.content, version: kept.version });
  }, [id, loaded, kept]);
  useMoveToConversation(fresh === null ? null : id, draft, field);
  return { id, page, draft, fresh, change: (next) => setFresh(storeNewChat(next)) };
}

/** The cursor position when a new chat moved to its own address. */
let cursor: { id: string; start: number; end: number } | null = null;

/** Once the draft of a new chat is on the service, navigates to the conversation's address and keeps the cursor. */
function useMoveToConversation(
  fresh: string | null,
  draft: DraftState,
  field: RefObject<HTMLTextAreaElement | null>,
): void {
  const navigate = useNavigate();
  const onService = draft.base !== null && draft.base.version >= 0;
  const moving = useRef(false);
  useEffect(() => {
    if (fresh === null || !onService || moving.current) return;
    moving.current = true;
    const move = async () => {
      await queryClient.fetchQuery(conversationQuery(fresh)).catch(() => {});
      endNewChat(fresh);
      const area = field.current;
      if (area !== null && area === document.activeElement)
        cursor = { id: fresh, start: area.selectionStart, end: area.selectionEnd };
      void navigate({ to: "/c/$conversation", params: { conversation: fresh }, replace: true });
    };
    return whenNotComposing(field.current, () => void move());
  }, [fresh, onService, field, navigate]);
  useLayoutEffect(() => {
    const area = field.current;
    if (cursor === null || area === null || fresh !== null) return;
    area.focus();
    area.setSelectionRange(cursor.start, cursor.end);
    cursor = null;
  }, [fresh, field]);
}

/** Runs a function when no input method is composing text. Returns how to cancel it. */
function whenNotComposing(area: HTMLTextAreaElement | null, run: () => void): () => void {
  let stopped = false;
  const ended = () => {
    area?.removeEventListener("compositionend", ended);
    if (!stopped) run();
  };
  if (area?.dataset["composing"] === undefined) ended();
  else area.addEventListener("compositionend", ended);
  return () => {
    stopped = true;
    area?.removeEventListener("compositionend", ended);
  };
}
