// How an answer ended when it did not simply end: what happened, what is kept, and what can be done.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { sendMessage } from "../api/outbox";
import { Button } from "../controls/button";
import { Icon } from "../controls/icon";
import type { Message, TurnFinished } from "../generated/events";
import { useSpeech } from "../words/speech";
import { endOf, endOfMessage, isCalm, wordOf, type End } from "./end";
import { useRoom } from "./room";

interface EndingProps {
  message: Message | null;
  turnID: string | null;
  finished: TurnFinished | null;
  last: boolean;
}

/** A turn as the service keeps it. The message does not say why it ended as it did; the turn does, and always will. */
export const turnQuery = (turnID: string) =>
  queryOptions({ queryKey: ["turn", turnID], queryFn: () => body(api.GET("/chat/turns/{turn_id}", { params: { path: { turn_id: turnID } } })), staleTime: Infinity });

export function Ending({ message, turnID, finished, last }: EndingProps) {
  const known = finished !== null ? endOf(finished) : message !== null ? endOfMessage(message) : null;
  const asks = known !== null && finished === null && known.status !== "completed" && known.status !== "cancelled";
  const turn = useQuery({ ...turnQuery(turnID ?? ""), enabled: asks && turnID !== null });
  if (known === null || known.status === "completed") return null;
  const end = turn.data === undefined || !asks ? known : { ...known, stop: turn.data.stop_reason, error: turn.data.error };
  return <Told end={end} message={message} last={last} />;
}

function Told({ end, message, last }: { end: End; message: Message | null; last: boolean }) {
  const { say } = useSpeech();
  const { id, busy } = useRoom();
  const calm = isCalm(end);
  const again = (messageID: string) => sendMessage({ conversationID: id, text: "", branch: { message_id: messageID, mode: "regenerate" }, busy: "reject" });
  return (
    <div className="my-3 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
      <p className={`flex items-start gap-2 ${calm ? "text-soft" : "text-amber"}`}>
        <span className="mt-0.5">
          <Icon name={end.status === "cancelled" ? "stop" : "warning"} size={16} />
        </span>
        <span>{say(wordOf(end))}</span>
      </p>
      {message !== null && !busy && (
        <span className="flex flex-wrap gap-1">
          {end.stop === "max_tokens" && last && (
            <Button onClick={() => sendMessage({ conversationID: id, text: say("transcript.continue_text"), busy: "reject" })}>{say("transcript.continue")}</Button>
          )}
          <Button icon="retry" onClick={() => again(message.message_id)}>
            {say("transcript.retry")}
          </Button>
        </span>
      )}
    </div>
  );
}
