// How an answer ended when it did not simply end: what happened, what is kept, and what can be done.
import { useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { sendMessage } from "../api/outbox";
import { Button } from "../controls/button";
import { Icon } from "../controls/icon";
import type { Message, TurnError, TurnFinished } from "../generated/events";
import { useSpeech } from "../words/speech";
import type { Word } from "../words/words";
import { useRoom } from "./room";

interface EndingProps {
  message: Message | null;
  turnID: string | null;
  finished: TurnFinished | null;
  last: boolean;
}

interface End {
  status: string;
  stop: string | null;
  error: TurnError | null;
}

export function Ending({ message, turnID, finished, last }: EndingProps) {
  const status = message?.status ?? (finished?.status === "completed" ? "complete" : finished?.status);
  const plain = status === "complete" || status === "cancelled" || status === undefined;
  // The message does not say why; the turn does, and always will.
  const turn = useQuery({
    queryKey: ["turn", turnID],
    queryFn: () => body(api.GET("/chat/turns/{turn_id}", { params: { path: { turn_id: turnID! } } })),
    enabled: !plain && finished === null && turnID !== null,
    staleTime: Infinity,
  });
  if (status === undefined || status === "complete") return null;
  const end: End = finished === null ? { status, stop: turn.data?.stop_reason ?? null, error: turn.data?.error ?? null } : { status, stop: finished.stop_reason, error: finished.error };
  return <Told end={end} message={message} last={last} />;
}

function Told({ end, message, last }: { end: End; message: Message | null; last: boolean }) {
  const { say } = useSpeech();
  const { id, busy } = useRoom();
  const calm = end.status === "cancelled" || end.stop === "max_tokens";
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

const byStop: Readonly<Record<string, Word>> = {
  max_tokens: "transcript.end.max_tokens",
  deadline: "transcript.end.deadline",
  budget_reached: "transcript.end.budget_reached",
  tool_limit: "transcript.end.tool_limit",
};

const byError: Readonly<Record<string, Word>> = {
  model_unavailable: "transcript.end.model_unavailable",
  model_rate_limited: "transcript.end.model_rate_limited",
  model_protocol: "transcript.end.model_protocol",
  interrupted: "transcript.end.interrupted",
};

function wordOf({ status, stop, error }: End): Word {
  if (status === "cancelled") return "transcript.end.cancelled";
  return byStop[stop ?? ""] ?? byError[error?.code ?? ""] ?? (status === "incomplete" ? "transcript.end.incomplete" : "transcript.end.failed");
}
