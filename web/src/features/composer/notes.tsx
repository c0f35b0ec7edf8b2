// The notes below the field: the length of the text, the reason of a refusal, and the end of a rate limit.
import { failureText } from "../../api/outbox-message";
import { useOutbox, useAutoSend, type DeliveryFailure } from "../../api/outbox";
import { maxInput } from "../../generated/limits";
import { formatSeconds } from "../../controls/countdown";
import { deferred } from "../../controls/deferred";
import { useLocalization } from "../../messages/localization";
import { useSteeringRequests } from "./steering-requests";

const ApprovalNote = deferred(() => import("./approval-note").then((m) => m.ApprovalNote), { onFailure: () => {} });

interface NotesProps {
  id: string;
  conversationID: string;
  length: number;
  /** Why the service refused the text, which is in the field again. */
  refused: DeliveryFailure | null;
  limit: { active: boolean; seconds: number };
  /** Whether the draft is only on this device. */
  unsaved: boolean;
  turn: string | null;
  /** Whether the turn waits for the user's approval. */
  waits: boolean;
}

export function Notes({ id, conversationID, length, refused, limit, unsaved, turn, waits }: NotesProps) {
  const { t } = useLocalization();
  const stop = useSteeringRequests(({ byID }) => (turn === null ? undefined : byID[turn]))?.refusal ?? null;
  return (
    <div id={id} className="flex flex-col gap-1 px-2 pt-1.5 text-xs text-soft empty:hidden">
      {waits && <ApprovalNote />}
      {length > maxInput ? (
        <p role="alert" className="text-danger">
          {t("composer.length.over", { over: length - maxInput })}
        </p>
      ) : (
        length > maxInput * 0.9 && (
          <p className="tabular-nums">{t("composer.length", { count: length, most: maxInput })}</p>
        )
      )}
      {refused !== null && (
        <p role="alert" className="text-danger">
          {refused.status === 413
            ? t("composer.refused.length")
            : t("composer.refused.field", { detail: failureText(refused) })}
        </p>
      )}
      {limit.seconds > 0 && <Limit conversationID={conversationID} seconds={limit.seconds} />}
      {stop !== null && (
        <p role="status">{t(stop.status === 401 ? "composer.stop.signed_out" : "composer.stopping.again")}</p>
      )}
      {unsaved && length <= maxInput && <p role="status">{t("composer.draft.unsaved")}</p>}
    </div>
  );
}

function Limit({ conversationID, seconds }: { conversationID: string; seconds: number }) {
  const { t, intl } = useLocalization();
  const autoSend = useAutoSend((choice) => choice.autoSend);
  // The notice of a rate-limited message already states the limit, with its own countdown and checkbox.
  const noticeShown = useOutbox(({ list }) =>
    list.some((one) => one.conversationID === conversationID && one.failure?.code === "rate_limited"),
  );
  if (noticeShown) return <p className="sr-only">{t("composer.limit.soon")}</p>;
  return (
    <div className="flex flex-wrap items-center gap-x-4 text-warning">
      <p role="status" className="sr-only">
        {t("composer.limit.soon")}
      </p>
      {/* The visible countdown. A screen reader announces the limit once, above. */}
      <p aria-hidden="true" className="tabular-nums">
        {t("composer.limit", { time: formatSeconds(seconds, intl) })}
      </p>
      <label className="flex min-h-8 items-center gap-2 text-soft pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="size-4 accent-accent"
          checked={autoSend}
          onChange={({ target: { checked } }) => useAutoSend.setState({ autoSend: checked })}
        />
        {t("composer.limit.auto_send")}
      </label>
    </div>
  );
}
