// A request for approval: what a tool call would do, its exact input, and the decision. It shows the request until the
// user decides, and the decision afterwards.
import { memo, useEffect, useRef, type ReactNode } from "react";
import { useSecondsUntil, formatSeconds } from "../../controls/countdown";
import { Icon, type IconName } from "../../controls/icon";
import type { PartApproval } from "../../generated/events";
import { approvingMessages } from "../../messages/approving";
import { useLocalization, useMessages } from "../../messages/localization";
import { announce } from "../../parts/announcements";
import { ApprovalActions } from "./approval-actions";
import { ApprovalInput } from "./approval-values";
import { decide, useDecisions, type Decision, type Resolution } from "./decisions";

interface ApprovalProps {
  turnID: string;
  approval: PartApproval;
  /** Whether the call waits for the decision. */
  waits: boolean;
}

export const Approval = memo(function Approval({ turnID, approval, waits }: ApprovalProps) {
  const t = useMessages(approvingMessages);
  const sending = useDecisions(({ byID }) => byID[approval.approval_id]);
  const section = useRef<HTMLElement>(null);
  const known: Resolution | null =
    approval.decision !== undefined
      ? { decision: approval.decision, reason: approval.reason }
      : sending?.state === "accepted" || sending?.state === "too_late"
        ? sending.resolution
        : null;
  const pending = known === null && waits;
  useAnnouncements(approval, pending, known);
  if (known === null && !pending) return null;
  const send = (decision: Decision) => {
    section.current?.focus({ preventScroll: true }); // the buttons are disabled, and removed at the end
    void decide(turnID, approval, decision);
  };
  return (
    <section
      ref={section}
      tabIndex={-1}
      aria-label={t("approving.of", { action: approval.action })}
      data-approval={pending ? "pending" : "decided"}
      className={`my-3 scroll-my-4 rounded-lg text-sm ${pending ? "border border-edge bg-raised p-4 shadow-rest" : ""}`}
    >
      {known !== null ? (
        <Resolved resolution={known} late={sending?.state === "too_late"} />
      ) : (
        <>
          <Request approval={approval} />
          <ApprovalActions approval={approval} sending={sending} onDecide={send} />
        </>
      )}
    </section>
  );
});

/** Announces a request, and its resolution if this page has shown the request. */
function useAnnouncements(approval: PartApproval, pending: boolean, known: Resolution | null): void {
  const t = useMessages(approvingMessages);
  const { action, summary } = approval;
  const asked = useRef(false);
  const decision = known?.decision;
  useEffect(() => {
    if (pending && !asked.current) {
      asked.current = true;
      announce(t("approving.announced", { action, summary }));
    }
    if (decision !== undefined && asked.current) {
      asked.current = false;
      announce(t(`approving.decided.${decision}`));
    }
  }, [pending, decision, action, summary, t]);
}

function Request({ approval }: { approval: PartApproval }) {
  const t = useMessages(approvingMessages);
  const { action, summary, effects, reasons, risk, reversibility, scope } = approval;
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <p className="flex items-center gap-2 text-warning">
          <Icon name="clock" size={16} />
          {t("transcript.activity.requires_action")}
        </p>
        <Expiry at={approval.expires_at} />
      </div>
      <p dir="auto" className="mt-2 text-base font-semibold wrap-anywhere">
        {action}
      </p>
      <p dir="auto" className="mt-0.5 wrap-anywhere">
        {summary}
      </p>
      <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 max-sm:grid-cols-1 max-sm:gap-y-0.5">
        {reasons.length > 0 && (
          <Row label={t("approving.reasons")}>
            <Sentences list={reasons} />
          </Row>
        )}
        {effects.length > 0 && (
          <Row label={t("approving.effects")}>
            <Sentences list={effects} />
          </Row>
        )}
        {scope.resource !== "" && (
          <Row label={t("approving.resource")}>
            <bdi>{scope.resource}</bdi>
          </Row>
        )}
        <Row label={t("approving.risk")}>
          <Strong if={risk === "high" || risk === "critical"}>{t(`approving.risk.${risk}`)}</Strong>
        </Row>
        <Row label={t("approving.undo")}>
          <Strong if={reversibility === "irreversible"}>{t(`approving.undo.${reversibility}`)}</Strong>
        </Row>
      </dl>
      <ApprovalInput input={approval.input} marked={approval.marked ?? []} />
    </>
  );
}

function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-faint">{label}</dt>
      <dd className="min-w-0 wrap-anywhere max-sm:mb-1.5">{children}</dd>
    </>
  );
}

function Sentences({ list }: { list: readonly string[] }) {
  return list.map((sentence, at) => (
    <p key={at} dir="auto">
      {sentence}
    </p>
  ));
}

/** A word that needs attention has weight and colour; others are plain. */
function Strong({ if: strong, children }: { if: boolean; children: ReactNode }) {
  return strong ? <strong className="font-semibold text-danger">{children}</strong> : children;
}

function Expiry({ at }: { at: string }) {
  const { intl } = useLocalization();
  const t = useMessages(approvingMessages);
  const left = useSecondsUntil(Date.parse(at));
  // The service decides when it has expired: the clock of this device may be wrong.
  if (left === 0) return <p className="text-faint">{t("approving.expires_now")}</p>;
  const [value, unit] = left >= 7_200 ? [left / 3_600, "hour"] : [left / 60, "minute"];
  const time =
    left < 120
      ? formatSeconds(left, intl)
      : intl.formatNumber(Math.floor(value), { style: "unit", unit, unitDisplay: "long" });
  return <p className="text-faint tabular-nums">{t("approving.expires", { time })}</p>;
}

const resolvedIcons: Readonly<Record<Resolution["decision"], IconName>> = {
  approve_once: "check",
  approve_for_conversation: "check",
  approve_with_edits: "edit",
  reject: "close",
  expired: "clock",
  cancelled: "stop",
};

/** late: this page sent another decision, after this one. */
function Resolved({ resolution: { decision, reason = "" }, late }: { resolution: Resolution; late: boolean }) {
  const t = useMessages(approvingMessages);
  return (
    <div className="flex items-start gap-2 text-soft">
      <span className="mt-0.5">
        <Icon name={resolvedIcons[decision]} size={16} />
      </span>
      <div className="min-w-0">
        {late && <p className="text-warning">{t("approving.too_late")}</p>}
        <p>{t(`approving.decided.${decision}`)}</p>
        {reason !== "" && <p className="wrap-anywhere">{t("approving.reason_was", { reason })}</p>}
      </div>
    </div>
  );
}
