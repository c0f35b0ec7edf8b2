// The buttons of a request for approval, the form of its input, and the reason of a rejection.
import { useEffect, useRef, useState } from "react";
import type { Refusal } from "../../api/client";
import { failureOf, failureText } from "../../api/outbox-message";
import { maxRejectionReason } from "../../generated/limits";
import { Button } from "../../controls/button";
import { FormError } from "../../controls/form-error";
import type { PartApproval } from "../../generated/events";
import { approvingMessages, type ApprovingMessageKey } from "../../messages/approving";
import { useMessages } from "../../messages/localization";
import { ApprovalEditor } from "./approval-editor";
import type { Decision, Sending } from "./decisions";

interface ActionsProps {
  approval: PartApproval;
  sending: Sending | undefined;
  onDecide(decision: Decision): void;
}

export function ApprovalActions({ approval, sending, onDecide }: ActionsProps) {
  const t = useMessages(approvingMessages);
  const [open, setOpen] = useState<"edit" | "reject" | null>(null);
  const edit = useRef<HTMLButtonElement>(null);
  const reject = useRef<HTMLButtonElement>(null);
  const closed = useRef<"edit" | "reject" | null>(null);
  useEffect(() => {
    // The buttons are rendered again: the focus returns to the one that opened the form.
    if (open === null && closed.current !== null) (closed.current === "edit" ? edit : reject).current?.focus();
    closed.current = open;
  }, [open]);
  const busy = sending?.state === "sending";
  const can = (decision: Decision["decision"]) => approval.options.includes(decision);
  const close = () => setOpen(null);
  return (
    <div className="mt-3">
      {open === "edit" ? (
        <ApprovalEditor
          input={approval.input}
          busy={busy}
          onSend={(edited_input) => onDecide({ decision: "approve_with_edits", edited_input })}
          onCancel={close}
        />
      ) : open === "reject" ? (
        <Rejection busy={busy} onSend={(reason) => onDecide({ decision: "reject", reason })} onCancel={close} />
      ) : (
        <>
          <div className="flex flex-wrap gap-2 max-sm:flex-col">
            <Button look="primary" icon="check" disabled={busy} onClick={() => onDecide({ decision: "approve_once" })}>
              {t("approving.approve")}
            </Button>
            {can("approve_for_conversation") && (
              <Button disabled={busy} onClick={() => onDecide({ decision: "approve_for_conversation" })}>
                {t("approving.approve_conversation")}
              </Button>
            )}
            {can("approve_with_edits") && (
              <Button ref={edit} icon="edit" disabled={busy} onClick={() => setOpen("edit")}>
                {t("approving.edit")}
              </Button>
            )}
            <Button ref={reject} icon="close" disabled={busy} onClick={() => setOpen("reject")}>
              {t("approving.reject")}
            </Button>
          </div>
          {can("approve_for_conversation") && (
            <p className="mt-2 text-xs text-faint">{t("approving.approve_conversation.hint")}</p>
          )}
        </>
      )}
      <Progress sending={sending} />
    </div>
  );
}

function Progress({ sending }: { sending: Sending | undefined }) {
  const t = useMessages(approvingMessages);
  return (
    <>
      <div role="status" className="mt-2 text-soft empty:hidden">
        {sending?.state === "sending" && t(progressOf(sending.retry))}
      </div>
      <div role="alert" className="mt-2 empty:hidden">
        {sending?.state === "refused" && (
          <FormError>
            <Refused refusal={sending.refusal} />
          </FormError>
        )}
      </div>
    </>
  );
}

function progressOf(retry: Refusal | null): ApprovingMessageKey {
  if (retry === null) return "approving.sending";
  return retry.status === 401 ? "approving.signed_out" : "approving.sending_again";
}

function Refused({ refusal }: { refusal: Refusal }) {
  const t = useMessages(approvingMessages);
  if (refusal.status === 404) return t("approving.gone");
  if (refusal.code === "approval_changed") return t("approving.changed");
  return t("approving.refused", { detail: failureText(failureOf(refusal, 0)) });
}

interface RejectionProps {
  busy: boolean;
  onSend(reason: string): void;
  onCancel(): void;
}

function Rejection({ busy, onSend, onCancel }: RejectionProps) {
  const t = useMessages(approvingMessages);
  const [reason, setReason] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) onSend(reason.trim());
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.nativeEvent.isComposing) return;
        event.stopPropagation(); // Escape also stops the answer
        onCancel();
      }}
    >
      <label className="flex flex-col gap-1.5 font-medium">
        {t("approving.reason")}
        <textarea
          ref={field}
          dir="auto"
          rows={2}
          maxLength={maxRejectionReason}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          className="rounded-md border border-edge bg-raised px-3 py-2 text-base font-normal md:text-sm"
        />
        <span className="font-normal text-faint">{t("approving.reason.hint")}</span>
      </label>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="danger" icon="close" disabled={busy}>
          {t("approving.reject")}
        </Button>
        <Button look="quiet" disabled={busy} onClick={onCancel}>
          {t("approving.back")}
        </Button>
      </div>
    </form>
  );
}
