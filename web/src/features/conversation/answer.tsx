// An answer: while it streams, from the events of its turn; afterwards, from its message. Both have the same parts with
// the same identifiers, so nothing moves when the message replaces the events.
import { Fragment, memo, use, useMemo } from "react";
import { sendMessage } from "../../api/outbox";
import { deferred } from "../../controls/deferred";
import { Button, IconButton } from "../../controls/button";
import type { Message, TurnRouting } from "../../generated/events";
import { CopyButton } from "../../parts/copy-button";
import { ReportContext } from "../../parts/cited";
import { Part } from "../../parts/part";
import type { PartView } from "../../turn/fold";
import { useLive } from "../../turn/live";
import { useLocalization } from "../../messages/localization";
import { Citation, ReportDetails } from "../research";
import { Actions, MessageMenu, SentAt, Siblings } from "./actions";
import { Activity } from "./activity";
import { Ending } from "./ending";
import { FeedbackButtons, isEligible } from "./feedback";
import { useConversationContext } from "./conversation-context";
import { isFinal } from "./rows";
import { profileMessages, Routing } from "./routing";

const Approval = deferred(() => import("./approval").then((m) => m.Approval), { onFailure: () => {} });

interface AnswerProps {
  message: Message | null;
  turnID: string | null;
  /** Whether it is the last row of the conversation. */
  last: boolean;
}

/** Whether a message is the report of a research task, which no turn has written. */
const isReport = (message: Message | null): boolean =>
  message?.turn_id === null && message.parts.some(({ type }) => type === "artifact");

/** An answer of a turn, or the report of a research task. */
export const Answer = memo(function Answer(props: AnswerProps) {
  const { id: conversation } = useConversationContext();
  const report = isReport(props.message) ? (props.message?.message_id ?? null) : null;
  const context = useMemo(() => (report === null ? null : { conversation, report, Citation }), [conversation, report]);
  return (
    <ReportContext value={context}>
      <Content {...props} />
    </ReportContext>
  );
});

function Content({ message, turnID, last }: AnswerProps) {
  const final = isFinal(message) ? message : null;
  const live = useLive(({ byID: turns }) => (final !== null || turnID === null ? undefined : turns[turnID]));
  const routing = message?.routing ?? routingOf(live?.view.routing ?? null);
  const parts: readonly Partial<PartView>[] = final?.parts ?? live?.view.parts ?? message?.parts ?? [];
  const finished = live?.view.finished ?? null;
  const ended = final !== null || finished !== null;
  const completed = (final?.status ?? "complete") === "complete" && (finished?.status ?? "completed") === "completed";
  return (
    <>
      {routing !== null && <Routing routing={routing} message={final} />}
      {parts.map((part, at) => (
        <Fragment key={part.part_id}>
          <Part part={part as PartView} endShown={ended && !completed && at === parts.length - 1} />
          {part.state === "failed" && last && final !== null && <RetryCall name={part.title ?? part.tool_name ?? ""} />}
          {part.approval !== undefined && turnID !== null && (
            <Approval turnID={turnID} approval={part.approval} waits={!ended && part.state === "awaiting_approval"} />
          )}
        </Fragment>
      ))}
      <Details />
      {ended && <Ending message={final} turnID={turnID} finished={finished} last={last} />}
      {final !== null ? <AnswerActions message={final} last={last} /> : <Activity turn={live} />}
    </>
  );
}

/** What is known of a report; nothing for other answers. */
function Details() {
  const report = use(ReportContext);
  return report === null ? null : <ReportDetails conversation={report.conversation} report={report.report} />;
}

/** Asks the model in words to try a failed call again. */
function RetryCall({ name }: { name: string }) {
  const { t } = useLocalization();
  const { id, busy } = useConversationContext();
  if (busy) return null;
  const again = () =>
    sendMessage({ conversationID: id, text: t("transcript.tool.again_text", { name }), ifBusy: "reject" });
  return (
    <Button look="quiet" icon="retry" aria-label={`${t("transcript.tool.again")}: ${name}`} onClick={again}>
      {t("transcript.tool.again")}
    </Button>
  );
}

/** Returns how auto chose the profile of a live turn, as its message will contain it. */
function routingOf(event: TurnRouting | null): Message["routing"] {
  return event === null || event.intelligence.requested !== "auto"
    ? null
    : { ...event.intelligence, reason: event.reason };
}

function AnswerActions({ message, last }: { message: Message; last: boolean }) {
  const { t } = useLocalization();
  const { id, busy } = useConversationContext();
  const again = (profile?: "balanced" | "deep_reasoning" | "coding") =>
    sendMessage({
      conversationID: id,
      text: "",
      branch: { message_id: message.message_id, mode: "regenerate" },
      ifBusy: "reject",
      ...(profile === undefined ? {} : { profile }),
    });
  return (
    <Actions always={last || message.sibling_count > 1}>
      {() => (
        <>
          <CopyButton
            label={t("transcript.copy_markdown")}
            copy={() => import("./copy-message").then((m) => m.copyMessage(message))}
          />
          {/* Otherwise the notice about the end contains "Try again". */}
          {!busy && !isReport(message) && message.status === "complete" && (
            <IconButton size="small" icon="retry" label={t("transcript.regenerate")} onClick={() => again()} />
          )}
          {last && isEligible(message) && <FeedbackButtons message={message} />}
          <MessageMenu message={message} onRegenerate={busy || isReport(message) ? null : again} />
          <Siblings message={message} />
          <SentAt at={message.created_at} />
          {message.profile !== null && (
            <span className="relative max-w-full px-1.5 wrap-anywhere">
              <span className="sr-only">{t("transcript.answered_by")} </span>
              {t(profileMessages[message.profile])}
              {(message.model_id ?? "") !== "" && (
                <>
                  {" · "}
                  <bdi>{message.model_id}</bdi>
                </>
              )}
            </span>
          )}
        </>
      )}
    </Actions>
  );
}
