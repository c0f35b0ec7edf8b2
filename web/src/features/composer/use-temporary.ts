// Whether a chat is temporary. The user can change that until the first message is sent, also after the service has the
// conversation because a draft was stored.
import { useState } from "react";
import { api, body, type Conversation, type ConversationPage } from "../../api/client";
import { currentOf } from "../../api/current-conversation";
import { cacheWithPending, refetchInAllTabs } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { toast } from "../../controls/toast";
import { useLocalization } from "../../messages/localization";
import type { Chat } from "./use-chat";

export interface TemporaryChoice {
  on: boolean;
  /** While a change is being stored. Nothing can be sent meanwhile, because the chat could still be of the other kind. */
  changing: boolean;
  change(on: boolean): void;
}

/** Returns the choice; null: the conversation is in use, so it can no longer be changed. */
export function useTemporary(chat: Chat, sending: boolean): TemporaryChoice | null {
  const { t } = useLocalization();
  const [wanted, setWanted] = useState<boolean | null>(null);
  const { fresh, page } = chat;
  if (chat.project !== undefined) return null; // it would be in no project
  if (fresh !== null)
    return {
      on: fresh.temporary ?? false,
      changing: chat.draft.saving,
      change: (on) => chat.change({ ...fresh, temporary: on }),
    };
  if (page === undefined || sending || !isUnused(page)) return null;
  const change = async (on: boolean) => {
    setWanted(on);
    try {
      cacheWithPending(await put(page, on).catch((refusal: unknown) => put(currentOf(refusal), on)));
    } catch (refusal) {
      noticeSignOut(refusal);
      toast(t("composer.temporary.failed"), { kind: "problem" });
    } finally {
      setWanted(null);
      void refetchInAllTabs("conversations");
      void refetchInAllTabs("conversation", page.conversation_id);
    }
  };
  return { on: wanted ?? page.temporary, changing: wanted !== null, change: (on) => void change(on) };
}

const isUnused = (page: ConversationPage): boolean =>
  page.message_count === 0 && page.live_turn_id === null && page.project_id === null && page.title === "";

function put(conversation: Conversation, temporary: boolean): Promise<Conversation> {
  const { conversation_id, version, profile, metadata } = conversation;
  return body(
    api.PUT("/conversations/{conversation_id}", {
      params: { path: { conversation_id }, header: { "If-Match": `"v${version}"` } },
      body: { profile, metadata, temporary },
    }),
  );
}
