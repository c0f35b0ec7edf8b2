// What sending means at the moment, and doing it.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { sendMessage, useLimit, usePatience, type Profile } from "../api/outbox";
import { conversationQuery, queryClient, settingsQuery } from "../api/queries";
import { useSecondsUntil } from "../controls/countdown";
import { draftSent, toBeMade } from "./drafts";
import type { Verb } from "./keys";
import { lengthOf, longestMessage, longestSteering } from "./length";
import { endNewChat } from "./new-chat";
import type { Standing } from "./standing";
import type { Chat } from "./use-chat";

export interface Way {
  /** What sending does by default; null: it simply sends. */
  verb: Verb | null;
  /** The ways there are while an answer is written; empty: it simply sends. */
  verbs: readonly Verb[];
  /** Code points of the text. */
  length: number;
  /** Until when a limit holds sending up; seconds 0: none does. */
  limit: { holds: boolean; seconds: number };
  canSend: boolean;
  submit(as: Verb | null): void;
}

export function useSend(chat: Chat, standing: Standing, once: Profile | null, onSent: () => void): Way {
  const navigate = useNavigate();
  const wanted = useQuery(settingsQuery).data?.busy_action ?? "queue";
  const limit = useLimited();
  const text = chat.draft.text.trim();
  const length = lengthOf(chat.draft.text);
  const verbs = text === "" ? [] : verbsOf(standing, length);
  const verb = verbs.length === 0 ? null : verbs.includes(wanted) ? wanted : "queue";
  const canSend = text !== "" && length <= longestMessage && !limit.holds;
  const submit = (as: Verb | null) => {
    if (!canSend) return;
    const steers = as === "steer" || as === "interrupt";
    const opening = toBeMade(chat.id);
    const head = as === null ? headSeen(chat, standing) : undefined;
    sendMessage({
      conversationID: chat.id,
      text,
      busy: as ?? "reject",
      ...(steers && standing.turn !== null ? { turn: standing.turn } : {}),
      ...(once === null || steers ? {} : { profile: once }),
      ...(head === undefined ? {} : { head }),
      ...(opening === undefined ? {} : { fresh: opening }),
    });
    draftSent(chat.id, text);
    onSent();
    if (chat.fresh === null) return;
    endNewChat(chat.id);
    void navigate({ to: "/c/$conversation", params: { conversation: chat.id } });
  };
  return { verb, verbs, length, limit, canSend, submit };
}

/** The ways to send while an answer is written, or about to be; empty: it is simply sent. */
function verbsOf({ turn, underWay, acceptsSteering, stopping }: Standing, length: number): readonly Verb[] {
  if (turn === null) return underWay ? ["queue"] : [];
  return acceptsSteering && !stopping && length <= longestSteering ? ["queue", "steer", "interrupt"] : ["queue"];
}

/** The head that the writer sees, where that is certain; a message written on top of another one is asked about. */
function headSeen({ page, fresh, id }: Chat, { answer }: Standing): string | null | undefined {
  if (page === undefined || fresh !== null || queryClient.getQueryState(conversationQuery(id).queryKey)?.isInvalidated) return undefined;
  return answer === null || answer === page.head_message_id ? page.head_message_id : undefined;
}

function useLimited(): Way["limit"] {
  const until = useLimit((limit) => limit.until);
  const patient = usePatience((choice) => choice.patient);
  const seconds = useSecondsUntil(until);
  return { holds: seconds > 0 && !patient, seconds };
}
