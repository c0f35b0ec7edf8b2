// The ways to send the text of the composer at the moment, and the function that sends it.
import { useNavigate } from "@tanstack/react-router";
import { useAttachments, withNames } from "../../api/attachments";
import { sendMessage, useRateLimit, useAutoSend, type Profile } from "../../api/outbox";
import { pendingProfile } from "../../api/pending-changes";
import { conversationQuery, queryClient } from "../../api/queries";
import { maxAttachments, maxInput, maxSteeringInput } from "../../generated/limits";
import { useSecondsUntil } from "../../controls/countdown";
import { useSendModes } from "../../keys/send-keys";
import type { SendMode } from "../../keys/send-modes";
import { drafts } from "./page-drafts";
import { lengthOf } from "./text-limits";
import { endNewChat } from "./new-chat";
import type { ComposerState } from "./composer-state";
import type { Chat } from "./use-chat";

export interface SendState {
  /** The default way to send during a live turn; null: the message is sent normally. */
  verb: SendMode | null;
  /** The ways to send during a live turn; empty: the message is sent normally. */
  verbs: readonly SendMode[];
  /** Code points of the text. */
  length: number;
  /** active: a rate limit prevents sending. seconds: the time until it ends; 0: no limit. */
  limit: { active: boolean; seconds: number };
  canSend: boolean;
  /** The number of uploads for which the message waits. */
  uploading: number;
  /** Whether there is neither a text nor a file. */
  empty: boolean;
  submit(as: SendMode | null): void;
}

export function useSend(chat: Chat, state: ComposerState, once: Profile | null, onSent: () => void): SendState {
  const navigate = useNavigate();
  const { wanted } = useSendModes();
  const limit = useLimited();
  const { files } = chat.draft;
  const gone = useAttachments((state) => files.some((id) => state.gone.includes(id)));
  const uploading = useAttachments((state) => state.uploading.filter((id) => id === chat.id).length);
  const text = chat.draft.text.trim();
  const empty = text === "" && files.length === 0;
  const length = lengthOf(chat.draft.text);
  const verbs = empty ? [] : verbsOf(state, length, files.length > 0);
  const verb = verbs.length === 0 ? null : verbs.includes(wanted) ? wanted : "queue";
  const canSend =
    !empty && uploading === 0 && !gone && files.length <= maxAttachments && length <= maxInput && !limit.active;
  const submit = (as: SendMode | null) => {
    if (!canSend) return;
    const steers = as === "steer" || as === "interrupt";
    const opening = drafts.pendingCreation(chat.id);
    const head = as === null ? headSeen(chat, state) : undefined;
    const profile = once ?? pendingProfile(chat.id); // the message may arrive before the profile that is displayed is stored
    sendMessage({
      conversationID: chat.id,
      text,
      ...(files.length === 0 ? {} : { attachments: withNames(files, useAttachments.getState()) }),
      ifBusy: as ?? "reject",
      ...(steers && state.turn !== null ? { targetTurn: state.turn } : {}),
      ...(profile === null || steers ? {} : { profile }),
      ...(head === undefined ? {} : { expectedHead: head }),
      ...(opening === undefined ? {} : { newConversation: opening }),
    });
    drafts.clearSent(chat.id, { text, files });
    onSent();
    if (chat.fresh === null && chat.project === undefined) return;
    endNewChat(chat.id, chat.project);
    void navigate({ to: "/c/$conversation", params: { conversation: chat.id } });
  };
  return { verb, verbs, length, limit, uploading, canSend, empty, submit };
}

/** The ways to send during a live turn or while a message is in flight; empty: the message is sent normally. */
function verbsOf(
  { turn, messageInFlight, acceptsSteering, stopping }: ComposerState,
  length: number,
  withFiles: boolean,
): readonly SendMode[] {
  if (turn === null) return messageInFlight ? ["queue"] : [];
  return acceptsSteering && !withFiles && !stopping && length <= maxSteeringInput
    ? ["queue", "steer", "interrupt"]
    : ["queue"];
}

/** The head message that the user sees; undefined: not certain. The service refuses the message if the head differs. */
function headSeen({ page, fresh, id }: Chat, { answerMessageID: answer }: ComposerState): string | null | undefined {
  if (page === undefined || fresh !== null || queryClient.getQueryState(conversationQuery(id).queryKey)?.isInvalidated)
    return undefined;
  return answer === null || answer === page.head_message_id ? page.head_message_id : undefined;
}

function useLimited(): SendState["limit"] {
  const until = useRateLimit((limit) => limit.until);
  const autoSend = useAutoSend((choice) => choice.autoSend);
  const seconds = useSecondsUntil(until);
  return { active: seconds > 0 && !autoSend, seconds };
}
