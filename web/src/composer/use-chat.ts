// The conversation that a composer writes into: one that there is, or the one that a new chat will be.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Refusal, type ConversationPage } from "../api/client";
import { useLetters } from "../api/outbox";
import { conversationQuery } from "../api/queries";
import { draftOf, hearDraft, openDraft, useDrafts } from "./drafts";
import { emptyDraft, type DraftState } from "./draft";
import { endNewChat, newChat, rememberNewChat, type NewChat } from "./new-chat";

export interface Chat {
  id: string;
  page: ConversationPage | undefined;
  draft: DraftState;
  /** Set while it is a new chat. */
  fresh: NewChat | null;
  change(fresh: NewChat): void;
}

export function useChat(conversationID: string | null, page: ConversationPage | undefined): Chat {
  const [fresh, setFresh] = useState(() => (conversationID === null ? newChat() : null));
  const id = conversationID ?? fresh!.id;
  const loaded = useLetters((letters) => letters.loaded);
  const draft = useDrafts(({ byID }) => byID[id] ?? emptyDraft);
  // A new chat whose draft is on the service already: a reload goes on with it.
  const made = useQuery({ ...conversationQuery(id), enabled: fresh?.made === true });
  const known = page ?? (fresh?.made ? made.data : undefined);

  const change = (next: NewChat) => setFresh(rememberNewChat(next));
  const gone = fresh !== null && made.error instanceof Refusal && made.error.status === 404;
  const begun = fresh !== null && (made.data?.message_count ?? 0) > 0;
  useEffect(() => {
    if (!gone && !begun) return;
    endNewChat(id);
    setFresh(newChat());
  }, [id, gone, begun]);

  useEffect(() => {
    if (!loaded) return;
    openDraft(id, fresh !== null && !fresh.made ? { profile: fresh.profile } : undefined);
  }, [id, loaded, fresh]);

  const kept = known?.draft;
  useEffect(() => {
    if (loaded && kept !== undefined) hearDraft(id, { content: kept.content, version: kept.version });
  }, [id, loaded, kept]);

  const onService = draft.base !== null && draft.base.version >= 0;
  useEffect(() => {
    if (fresh !== null && !fresh.made && onService && draftOf(id).base !== null) change({ ...fresh, made: true });
  }, [id, fresh, onService]);

  return { id, page: known, draft, fresh, change };
}
