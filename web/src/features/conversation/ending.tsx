// The notice below an answer that did not complete: what happened, and what the user can do.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import { sendMessage } from "../../api/outbox";
import { budgetReset } from "../../api/usage";
import { Button } from "../../controls/button";
import { useSecondsUntil } from "../../controls/countdown";
import { Icon } from "../../controls/icon";
import type { Message, TurnFinished } from "../../generated/events";
import { useLocalization } from "../../messages/localization";
import { endOf, endOfMessage, isExpectedEnd, messageOf, type End } from "./end";
import { useConversationContext } from "./conversation-context";

interface EndingProps {
  message: Message | null;
  turnID: string | null;
  finished: TurnFinished | null;
  last: boolean;
}

/** The stored turn, which gives the reason of its end; the message does not. The reason never changes. */
export const turnQuery = (turnID: string) =>
  queryOptions({
    queryKey: ["turn", turnID],
    queryFn: () => body(api.GET("/chat/turns/{turn_id}", { params: { path: { turn_id: turnID } } })),
    staleTime: Infinity,
  });

export function Ending({ message, turnID, finished, last }: EndingProps) {
  const known = finished !== null ? endOf(finished) : message !== null ? endOfMessage(message) : null;
  const noReason = known !== null && finished === null && known.status !== "completed" && known.status !== "cancelled";
  const turn = useQuery({ ...turnQuery(turnID ?? ""), enabled: noReason && turnID !== null });
  if (known === null || known.status === "completed") return null;
  const end =
    turn.data === undefined || !noReason ? known : { ...known, stop: turn.data.stop_reason, error: turn.data.error };
  return <EndNotice end={end} message={message} last={last} />;
}

function EndNotice({ end, message, last }: { end: End; message: Message | null; last: boolean }) {
  const { t, intl } = useLocalization();
  const { id, busy } = useConversationContext();
  const expected = isExpectedEnd(end);
  const reset =
    end.stop === "budget_reached" ? budgetReset(message === null ? Date.now() : Date.parse(message.created_at)) : 0;
  const waits = useSecondsUntil(reset) > 0;
  const again = (messageID: string) =>
    sendMessage({
      conversationID: id,
      text: "",
      branch: { message_id: messageID, mode: "regenerate" },
      ifBusy: "reject",
    });
  return (
    <div className="my-3 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
      <p className={`flex items-start gap-2 ${expected ? "text-soft" : "text-warning"}`}>
        <span className="mt-0.5">
          <Icon name={end.status === "cancelled" ? "stop" : "warning"} size={16} />
        </span>
        <span>
          {waits
            ? t("transcript.end.budget_reached.until", {
                when: intl.formatDate(reset, { dateStyle: "medium", timeStyle: "short" }),
              })
            : t(messageOf(end))}
        </span>
      </p>
      {message !== null && !busy && !waits && (
        <span className="flex flex-wrap gap-1">
          {(end.stop === "max_tokens" || end.stop === "budget_reached") && last && (
            <Button
              onClick={() => sendMessage({ conversationID: id, text: t("transcript.continue_text"), ifBusy: "reject" })}
            >
              {t("transcript.continue")}
            </Button>
          )}
          <Button icon="retry" onClick={() => again(message.message_id)}>
            {t("transcript.retry")}
          </Button>
        </span>
      )}
    </div>
  );
}
