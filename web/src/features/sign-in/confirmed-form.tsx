// The dialog of a change to how the account signs in, which may need a recent sign-in.
import { useState, type FormEvent, type ReactNode } from "react";
import { Refusal } from "../../api/client";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { useMessages } from "../../messages/localization";
import { passkeyFailure } from "./passkey-button";
import { FormError } from "../../controls/form-error";
import { ReauthenticationDialog, useReauthentication } from "./reauthenticate";
import { signingInMessages, type SigningInMessageKey } from "../../messages/signing-in";

interface ConfirmedFormProps {
  title: string;
  description?: string;
  action: string;
  look?: "primary" | "danger";
  /** Texts for the statuses that have a special meaning here. */
  reasons?: Partial<Record<number, SigningInMessageKey>>;
  run: () => Promise<void>;
  onClose: () => void;
  children?: ReactNode;
}

/** A dialog with one action, which may need a recent sign-in. */
export function ConfirmedForm({
  title,
  description,
  action,
  look,
  reasons,
  run,
  onClose,
  children,
}: ConfirmedFormProps) {
  const t = useMessages(signingInMessages);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<SigningInMessageKey | null>(null);
  const proof = useReauthentication();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(null);
    try {
      await proof.run(async () => {
        await run();
        onClose();
      });
    } catch (error) {
      noticeSignOut(error);
      setProblem((error instanceof Refusal && reasons?.[error.status]) || passkeyFailure(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} {...(description === undefined ? {} : { description })} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-4">
        {children}
        <div role="alert" className="empty:hidden">
          {problem !== null && <FormError>{t(problem)}</FormError>}
        </div>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>{t("pages.cancel")}</Button>
          <Button type="submit" look={look ?? "primary"} aria-disabled={busy} className="aria-disabled:opacity-70">
            {busy ? t("pages.auth.busy") : action}
          </Button>
        </div>
      </form>
      <ReauthenticationDialog proof={proof} />
    </Dialog>
  );
}
