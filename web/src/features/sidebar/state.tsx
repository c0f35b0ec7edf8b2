// The state of a conversation next to its title: an icon, with a text for screen readers.
import type { Conversation } from "../../api/client";
import { useCachedDraft } from "../../api/cached-draft";
import { isUnsent } from "../../api/provisional";
import { Icon } from "../../controls/icon";
import { useLocalization } from "../../messages/localization";
import { useDeletion } from "./deletion";
import { useRunningTasks } from "../../turn/running-tasks";
import { useApprovals } from "../../turn/use-approvals";

export function ConversationState({ conversation, current }: { conversation: Conversation; current: boolean }) {
  const { t } = useLocalization();
  const id = conversation.conversation_id;
  const deleting = useDeletion((deletion) => deletion.pending.has(id));
  // Newer than the list for a conversation that was open in this tab.
  const draft = useCachedDraft(id) ?? conversation.has_draft;
  const waits = useApprovals()?.data.some(({ conversation_id }) => conversation_id === id) === true;
  const researches = useRunningTasks(({ byID }) => Object.values(byID).includes(id));
  if (deleting) return <StateLabel>{t("pages.state.deleting")}</StateLabel>;
  if (waits || researches || conversation.live_turn_id !== null) {
    return (
      <StateLabel>
        {waits ? <Icon name="clock" size={16} /> : <Spinner />}
        <span className="sr-only">
          {t(waits ? "pages.state.approval" : researches ? "pages.state.research" : "pages.state.running")}
        </span>
      </StateLabel>
    );
  }
  if (conversation.unread && !current) {
    return (
      <StateLabel>
        <span
          className="m-1 size-2 rounded-full bg-accent forced-color-adjust-none"
          data-tooltip={t("pages.state.unread")}
        />
        <span className="sr-only">{t("pages.state.unread")}</span>
      </StateLabel>
    );
  }
  if (draft && !current && !isUnsent(conversation)) {
    return (
      <StateLabel>
        <span data-tooltip={t("pages.state.draft")}>
          <Icon name="edit" size={14} />
        </span>
        <span className="sr-only">{t("pages.state.draft")}</span>
      </StateLabel>
    );
  }
  return null;
}

function StateLabel({ children }: { children: React.ReactNode }) {
  return <span className="inline-flex shrink-0 items-center text-xs text-faint">{children}</span>;
}

function Spinner() {
  return (
    <svg
      aria-hidden="true"
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      className="animate-spin text-accent"
    >
      <path d="M8 2a6 6 0 1 1-6 6" />
    </svg>
  );
}
