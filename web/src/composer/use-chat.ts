// The conversation that a composer writes into: one that there is, or the one that a new chat will be.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import type { ConversationPage } from "../api/client";
import { useLetters } from "../api/outbox";
import { conversationQuery, queryClient } from "../api/queries";
import { emptyDraft, type DraftState } from "./draft";
import { hearDraft, openDraft, sweepDrafts, useDrafts } from "./drafts";
import { endNewChat, newChat, rememberNewChat, type NewChat } from "./new-chat";

export interface Chat {
  id: string;
  page: ConversationPage | undefined;
  draft: DraftState;
  /** Set while it is a new chat. */
  fresh: NewChat | null;
  change(fresh: NewChat): void;
}

export function useChat(conversationID: string | null, page: ConversationPage | undefined, field: RefObject<HTMLTextAreaElement | null>): Chat {
  const [fresh, setFresh] = useState(() => (conversationID === null ? newChat() : null));
  const id = conversationID ?? fresh!.id;
  const loaded = useLetters((letters) => letters.loaded);
  const draft = useDrafts(({ byID }) => byID[id] ?? emptyDraft);
  useEffect(() => openDraft(id, fresh === null ? undefined : { profile: fresh.profile }), [id, fresh]);
  useEffect(() => {
    if (loaded) void sweepDrafts();
  }, [loaded]);
  const kept = page?.draft;
  useEffect(() => {
    if (loaded && kept !== undefined) hearDraft(id, { content: kept.content, version: kept.version });
  }, [id, loaded, kept]);
  useRoomOfItsOwn(fresh === null ? null : id, draft, field);
  return { id, page, draft, fresh, change: (next) => setFresh(rememberNewChat(next)) };
}

/** Where the cursor stood when a new chat moved into its room. */
let cursor: { id: string; start: number; end: number } | null = null;

/** Once the draft of a new chat is on the service, it is a conversation: it moves to its own address, the cursor with it. */
function useRoomOfItsOwn(fresh: string | null, draft: DraftState, field: RefObject<HTMLTextAreaElement | null>): void {
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
      if (area !== null && area === document.activeElement) cursor = { id: fresh, start: area.selectionStart, end: area.selectionEnd };
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

/** An input method that is choosing words is not disturbed. */
function whenNotComposing(area: HTMLTextAreaElement | null, run: () => void): () => void {
  let stopped = false;
  const calm = () => {
    area?.removeEventListener("compositionend", calm);
    if (!stopped) run();
  };
  if (area?.dataset["composing"] === undefined) calm();
  else area.addEventListener("compositionend", calm);
  return () => {
    stopped = true;
    area?.removeEventListener("compositionend", calm);
  };
}
