// The notice of an outbox message that is not accepted yet: the reason, and what the user can do about it.
import { failureText } from "../../api/outbox-message";
import {
  discardOutgoing,
  retryOutgoing,
  useOutbox,
  setMessageAutoSend,
  type BusyAction,
  type OutboxMessage,
  type DeliveryFailure,
} from "../../api/outbox";
import { lengthOf } from "./text-limits";
import { drafts } from "./page-drafts";
import { focusComposer, focusToWrite } from "./composer-requests";
import { budgetReset } from "../../api/usage";
import { maxSteeringInput } from "../../generated/limits";
import { Button } from "../../controls/button";
import { formatSeconds, useSecondsUntil } from "../../controls/countdown";
import { Icon } from "../../controls/icon";
import { useLocalization, type Localization } from "../../messages/localization";
import type { MessageKey } from "../../messages/catalog";

/** The notice of the outbox message with this key; nothing if it is accepted or has no failure. */
export function OutboxMessageNotice({ messageKey }: { messageKey: string }) {
  const message = useOutbox(({ list }) => list.find((one) => one.key === messageKey));
  if (message === undefined || message.state === "accepted" || message.failure === null) return null;
  return <Notice message={message} failure={message.failure} />;
}

function Notice({ message, failure }: { message: OutboxMessage; failure: DeliveryFailure }) {
  const { t, intl } = useLocalization();
  const seconds = useSecondsUntil(message.state === "sending" ? 0 : failure.retryAt);
  const refused = message.state === "refused";
  // Rounded to the minute: the pause of the service is in whole seconds, and the response took a while.
  const reset = Math.round((failure.retryAt || budgetReset(Date.now())) / 60_000) * 60_000;
  return (
    <div className="flex flex-col gap-1.5 text-sm">
      <div className={`flex items-start gap-2 ${refused ? "text-danger" : "text-warning"}`}>
        <Icon name={refused ? "warning" : "clock"} size={16} />
        <div className="flex flex-wrap gap-x-1.5">
          <p role={refused ? "alert" : "status"}>
            {reasonOf(
              message,
              failure,
              t,
              (parts) => intl.formatList(parts, { type: "conjunction" }),
              intl.formatDate(reset, { dateStyle: "medium", timeStyle: "short" }),
            )}
          </p>
          {/* The countdown is hidden from screen readers, which read the reason above once. */}
          {seconds > 0 && failure.code !== "budget_reached" && (
            <p aria-hidden="true" className="text-soft tabular-nums">
              {t(failure.status === 429 && refused ? "composer.limit.again" : "composer.outbox.next_try", {
                time: formatSeconds(seconds, intl),
              })}
            </p>
          )}
        </div>
      </div>
      <NoticeActions message={message} failure={failure} early={seconds > 0 && failure.status === 429} />
    </div>
  );
}

/** Returns the text for a failure. when: the time at which the service accepts the message again. The detail from the service is used only if the app has no text of its own. */
export function reasonOf(
  message: OutboxMessage,
  failure: DeliveryFailure,
  t: Localization["t"],
  list: (parts: string[]) => string,
  when: string,
): string {
  if (failure.status === 0 && failure.code !== "outcome_unknown")
    return t(navigator.onLine ? "composer.outbox.unreachable" : "composer.outbox.offline");
  if (failure.status === 401) return t("composer.outbox.signed_out");
  if (failure.status === 404) return t("composer.outbox.not_found");
  if (failure.status === 413) return t("composer.outbox.too_long");
  if (failure.code === "rate_limited")
    return t(message.state === "refused" ? "composer.outbox.limited" : "composer.outbox.limited.auto_send");
  if (failure.status >= 500) {
    if (failure.downParts.length > 0)
      return t("composer.outbox.down", {
        parts: list(failure.downParts.map((part) => t(dependencyMessages[part] ?? "composer.part.other"))),
      });
    return t("composer.outbox.unavailable");
  }
  return t(codeMessages[failure.code] ?? "composer.outbox.refused", { detail: failureText(failure), when });
}

const dependencyMessages: Readonly<Record<string, MessageKey>> = {
  persistence: "composer.part.persistence",
  cache: "composer.part.cache",
  model_access: "composer.part.model_access",
  object_storage: "composer.part.object_storage",
  malware_scanning: "composer.part.malware_scanning",
  disk: "composer.part.disk",
};

const codeMessages: Readonly<Record<string, MessageKey>> = {
  turn_in_progress: "composer.outbox.turn_in_progress",
  conversation_head_moved: "composer.outbox.head_moved",
  steering_closed: "composer.outbox.steering_closed",
  steering_not_deliverable: "composer.outbox.steering_closed",
  too_many_live_turns: "composer.outbox.too_many_turns",
  budget_reached: "composer.outbox.budget_reached",
  too_many_inputs: "composer.outbox.too_many_waiting",
  too_many_follow_ups: "composer.outbox.too_many_waiting",
  outcome_unknown: "composer.outbox.unknown",
};

/** The buttons for what the user can do. early: the rate limit has not ended yet. */
function NoticeActions({
  message,
  failure,
  early,
}: {
  message: OutboxMessage;
  failure: DeliveryFailure;
  early: boolean;
}) {
  const { t } = useLocalization();
  const { key, state } = message;
  const limited = failure.code === "rate_limited";
  const busy = failure.code === "turn_in_progress";
  const closed = failure.code.startsWith("steering_");
  const moved = failure.code === "conversation_head_moved";
  const again = (changes?: { ifBusy: BusyAction }) => {
    retryOutgoing(key, changes);
    focusComposer(); // the pressed button is removed
  };
  return (
    <div className="flex flex-wrap items-center gap-1 ps-4">
      {state === "refused" && (busy || closed) && message.branch === undefined && (
        <Button look="quiet" icon="queue" onClick={() => again({ ifBusy: "queue" })}>
          {t("composer.outbox.queue")}
        </Button>
      )}
      {state === "refused" &&
        failure.liveTurn &&
        message.branch === undefined &&
        message.attachments === undefined &&
        lengthOf(message.text) <= maxSteeringInput && (
          <Button look="quiet" icon="steer" onClick={() => again({ ifBusy: "steer" })}>
            {t("composer.outbox.steer")}
          </Button>
        )}
      {moved && (
        <Button look="quiet" onClick={() => again({ ifBusy: message.ifBusy })}>
          {t("composer.outbox.send_anyway")}
        </Button>
      )}
      {state === "refused" &&
        (!busy || message.branch !== undefined) &&
        !closed &&
        !moved &&
        !early &&
        failure.status !== 404 &&
        failure.status !== 413 && (
          <Button look="quiet" icon="retry" onClick={() => again()}>
            {t("composer.outbox.retry")}
          </Button>
        )}
      {state === "waiting" && failure.status !== 401 && !limited && (
        <Button look="quiet" icon="retry" onClick={() => again()}>
          {t("composer.outbox.retry_now")}
        </Button>
      )}
      {limited && early && <WaitForLimitCheckbox message={message} />}
      {message.text === "" && message.attachments === undefined ? (
        <Button look="quiet" icon="trash" onClick={() => void discardOutgoing(key)}>
          {t("composer.outbox.discard")}
        </Button>
      ) : (
        <Button
          look="quiet"
          icon="undo"
          onClick={() => {
            drafts.restoreText(message.conversationID, discardOutgoing(key));
            focusToWrite();
          }}
        >
          {t("composer.outbox.edit")}
        </Button>
      )}
    </div>
  );
}

function WaitForLimitCheckbox({ message }: { message: OutboxMessage }) {
  const { t } = useLocalization();
  return (
    <label className="flex min-h-9 items-center gap-2 px-2 text-soft pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={message.autoSend}
        onChange={({ target: { checked } }) => setMessageAutoSend(message.key, checked)}
      />
      {t("composer.limit.auto_send")}
    </label>
  );
}
