// The notice that "auto" chose a profile other than balanced: which one, why, and a button to use balanced instead.
import { sendMessage } from "../../api/outbox";
import { Icon } from "../../controls/icon";
import type { Message, Profile } from "../../generated/events";
import { useLocalization } from "../../messages/localization";
import type { MessageKey } from "../../messages/catalog";
import { useConversationContext } from "./conversation-context";

export const profileMessages: Record<Profile, MessageKey> = {
  auto: "transcript.profile.auto",
  balanced: "transcript.profile.balanced",
  deep_reasoning: "transcript.profile.deep_reasoning",
  coding: "transcript.profile.coding",
};

/** Translations of the reasons, which the service gives in English. An unknown reason is displayed in English. */
const reasons: Readonly<Record<string, MessageKey>> = {
  "The message contains a block of code.": "transcript.routing.code_block",
  "The message contains a stack trace.": "transcript.routing.stack_trace",
  "The message contains lines of code.": "transcript.routing.code_lines",
  "The message is about source files.": "transcript.routing.source_files",
  "The message is about software work.": "transcript.routing.software",
};

/** message: the finished answer; null: it is still streaming. */
export function Routing({ routing, message }: { routing: NonNullable<Message["routing"]>; message: Message | null }) {
  const { t } = useLocalization();
  const { id, busy } = useConversationContext();
  const { requested, resolved } = routing;
  if (requested !== "auto" || resolved === "balanced") return null;
  const reason = reasons[routing.reason];
  const again = (messageID: string) =>
    sendMessage({
      conversationID: id,
      text: "",
      branch: { message_id: messageID, mode: "regenerate" },
      profile: "balanced",
      ifBusy: "reject",
    });
  return (
    <p className="mb-2 flex flex-wrap items-center gap-x-2 text-xs text-faint">
      <Icon name="route" size={14} mirrored />
      <span>
        {t("transcript.routing.to", { from: t(profileMessages[requested]), to: t(profileMessages[resolved]) })}
      </span>
      <bdi>{reason === undefined ? routing.reason : t(reason)}</bdi>
      {message !== null && !busy && (
        <button
          type="button"
          className="min-h-6 rounded-sm text-accent underline decoration-1 underline-offset-2"
          onClick={() => again(message.message_id)}
        >
          {t("transcript.regenerate_with", { profile: t("transcript.profile.balanced") })}
        </button>
      )}
    </p>
  );
}
