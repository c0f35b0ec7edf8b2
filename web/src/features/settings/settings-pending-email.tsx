// Settings: the new email address that waits for its confirmation.
import { useState } from "react";
import { api, body, Refusal, type Schemas } from "../../api/client";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import type { SigningInMessageKey } from "../../messages/signing-in";

function problemOf(refusal: unknown): SigningInMessageKey {
  if (!(refusal instanceof Refusal)) return "pages.auth.unavailable";
  if (refusal.code === "email_taken") return "pages.auth.email_taken";
  return refusal.status === 429 ? "pages.auth.too_many" : "pages.auth.unavailable";
}

interface PendingEmailProps {
  email: string;
  expiresAt: string | null;
  /** Displays the changed account. */
  show: (account: Schemas["Account"]) => void;
  onCancelled: () => void;
}

export function PendingEmail({ email, expiresAt, show, onCancelled }: PendingEmailProps) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const [busy, setBusy] = useState(false);
  const run = (request: () => Promise<void>) => {
    if (busy) return;
    setBusy(true);
    request()
      .catch((refusal: unknown) => {
        noticeSignOut(refusal);
        // 404: the address was confirmed, or the change was cancelled, elsewhere. The account feed reports that.
        if (refusal instanceof Refusal && refusal.status === 404) return;
        toast(t(problemOf(refusal)), { kind: "problem" });
      })
      .finally(() => setBusy(false));
  };
  const resend = async () => {
    show(await body(api.POST("/account/pending-email/resend")));
    toast(t("settings.email.resent"));
  };
  const cancel = async () => {
    await api.DELETE("/account/pending-email");
    onCancelled();
    toast(t("settings.email.cancelled"));
  };
  const when = intl.formatDate(expiresAt ?? undefined, { dateStyle: "medium", timeStyle: "short" });
  return (
    <div role="group" aria-label={t("settings.email.pending_title")} className="flex flex-col gap-3 py-3 text-sm">
      <p className="text-soft wrap-anywhere">{t("settings.email.pending", { email, when })}</p>
      <div className="flex flex-wrap gap-2">
        <Button aria-disabled={busy} onClick={() => run(resend)}>
          {t("settings.email.resend")}
        </Button>
        <Button aria-disabled={busy} onClick={() => run(cancel)}>
          {t("settings.email.cancel")}
        </Button>
      </div>
    </div>
  );
}
