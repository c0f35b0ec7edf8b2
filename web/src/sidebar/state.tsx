// What a conversation is doing, beside its title: a shape, and a word for who does not see it.
import { useQuery } from "@tanstack/react-query";
import type { Conversation } from "../api/client";
import { conversationQuery } from "../api/queries";
import { Icon } from "../controls/icon";
import { useSpeech } from "../words/speech";
import { useDeletion } from "./deletion";

export function State({ conversation, current }: { conversation: Conversation; current: boolean }) {
  const { say } = useSpeech();
  const id = conversation.conversation_id;
  const leaving = useDeletion((deletion) => deletion.leaving.has(id));
  // Drafts are known of conversations that were open here; nothing is asked for the list's sake.
  const { data: draft } = useQuery({ ...conversationQuery(id), enabled: false, select: (page) => page.draft.content.trim() !== "" });
  if (leaving) return <Word>{say("rooms.state.leaving")}</Word>;
  if (conversation.live_turn_id !== null) {
    return (
      <Word>
        <Spinner />
        <span className="sr-only">{say("rooms.state.running")}</span>
      </Word>
    );
  }
  if (conversation.unread && !current) {
    return (
      <Word>
        <span className="m-1 size-2 rounded-full bg-tide forced-color-adjust-none" title={say("rooms.state.unread")} />
        <span className="sr-only">{say("rooms.state.unread")}</span>
      </Word>
    );
  }
  if (draft === true && !current) {
    return (
      <Word>
        <span title={say("rooms.state.draft")}>
          <Icon name="edit" size={14} />
        </span>
        <span className="sr-only">{say("rooms.state.draft")}</span>
      </Word>
    );
  }
  return null;
}

function Word({ children }: { children: React.ReactNode }) {
  return <span className="inline-flex shrink-0 items-center text-xs text-faint">{children}</span>;
}

function Spinner() {
  return (
    <svg aria-hidden="true" width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" className="animate-spin text-tide">
      <path d="M8 2a6 6 0 1 1-6 6" />
    </svg>
  );
}
