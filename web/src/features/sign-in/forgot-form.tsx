// The form that requests a mail with a link to set a new password.
import { useState } from "react";
import { api } from "../../api/client";
import { useMessages } from "../../messages/localization";
import { signingInMessages } from "../../messages/signing-in";
import { EmailField, type EmailProps } from "./login-form";
import { FormFooter, useForm } from "./password-form";

/** The service does not say whether an account has the address, and neither does the text after the request. */
export function ForgotForm(of: EmailProps) {
  const t = useMessages(signingInMessages);
  const [sentTo, setSentTo] = useState<string | null>(null);
  const entry = useForm(async () => {
    await api.POST("/auth/password/forgot", { body: { email: of.email.trim() } });
    setSentTo(of.email.trim());
  });
  return (
    <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
      <EmailField {...of} autoFocus problem={entry.problem("email")} />
      <div role="status" className="empty:hidden">
        {sentTo !== null && (
          <p className="rounded-md bg-accent-wash px-3 py-2 text-sm wrap-anywhere">
            {t("signing-in.forgot.sent", { email: sentTo })}
          </p>
        )}
      </div>
      <FormFooter entry={entry}>{t("signing-in.forgot.send")}</FormFooter>
    </form>
  );
}
