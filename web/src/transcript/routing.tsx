// Tells that "auto" chose a profile of its own accord, why, and how to have it otherwise.
import { sendMessage } from "../api/outbox";
import { Icon } from "../controls/icon";
import type { Message, Profile, TurnRouting } from "../generated/events";
import { useSpeech } from "../words/speech";
import type { Word } from "../words/words";
import { useRoom } from "./room";

export const profileWords: Record<Profile, Word> = {
  auto: "transcript.profile.auto",
  balanced: "transcript.profile.balanced",
  deep_reasoning: "transcript.profile.deep_reasoning",
  coding: "transcript.profile.coding",
};

/** The service gives its reason in English; those that are known are told in the reader's language. */
const reasons: Readonly<Record<string, Word>> = {
  "The message holds a block of code.": "transcript.routing.code_block",
  "The message holds a stack trace.": "transcript.routing.stack_trace",
  "The message holds lines of code.": "transcript.routing.code_lines",
  "The message is about source files.": "transcript.routing.source_files",
  "The message is about software work.": "transcript.routing.software",
};

/** message: the answer, once it stands. */
export function Routing({ routing, message }: { routing: TurnRouting; message: Message | null }) {
  const { say } = useSpeech();
  const { id, busy } = useRoom();
  const { requested, resolved } = routing.intelligence;
  if (requested !== "auto" || resolved === "balanced") return null;
  const reason = reasons[routing.reason];
  const again = (messageID: string) => sendMessage({ conversationID: id, text: "", branch: { message_id: messageID, mode: "regenerate" }, profile: "balanced", busy: "reject" });
  return (
    <p className="mb-2 flex flex-wrap items-center gap-x-2 text-xs text-faint">
      <Icon name="route" size={14} mirrored />
      <span>{say("transcript.routing.to", { from: say(profileWords[requested]), to: say(profileWords[resolved]) })}</span>
      <bdi>{reason === undefined ? routing.reason : say(reason)}</bdi>
      {message !== null && !busy && (
        <button type="button" className="min-h-6 rounded-sm text-tide underline decoration-1 underline-offset-2" onClick={() => again(message.message_id)}>
          {say("transcript.again_with", { profile: say("transcript.profile.balanced") })}
        </button>
      )}
    </p>
  );
}
