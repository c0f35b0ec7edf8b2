// The page of the link in a mail that confirms a new email address. The address is confirmed by a button and not by the visit,
// because the scanners of mail servers visit links, too.
import { useState } from "react";
import { api, body } from "../../api/client";
import { Button } from "../../controls/button";
import { useMessages } from "../../messages/localization";
import { signingInMessages } from "../../messages/signing-in";
import { AuthLayout } from "./auth-layout";
import { forgetLink, tokenIn, useNewLink } from "./mail-links";
import { FormError } from "../../controls/form-error";
import { FormFooter, useForm } from "./password-form";

export function ConfirmEmail() {
  const t = useMessages(signingInMessages);
  useNewLink();
  const [token] = useState(() => tokenIn(location.hash));
  const [email, setEmail] = useState<string | null>(null);
  const entry = useForm(async () => {
    const confirmed = await body(api.POST("/auth/email/verify", { body: { token: token ?? "" } }));
    forgetLink();
    setEmail(confirmed.email);
  });
  const problem =
    token === null ? t("pages.mail_link.invalid") : (entry.problem("token") ?? entry.problem("email") ?? null);
  return (
    <AuthLayout>
      <title>{`${t("signing-in.confirm.title")} · ${t("app.name")}`}</title>
      <h1 className="text-xl font-semibold">{t("signing-in.confirm.title")}</h1>
      <div className="mt-6 flex flex-col gap-6">
        {problem !== null && (
          <div role="alert">
            <FormError>{problem}</FormError>
          </div>
        )}
        {email === null && problem === null && (
          <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
            <p className="text-soft">{t("signing-in.confirm.description")}</p>
            <FormFooter entry={entry}>{t("signing-in.confirm.action")}</FormFooter>
          </form>
        )}
        {email !== null && (
          <p role="status" className="wrap-anywhere">
            {t("signing-in.confirm.done", { email })}
          </p>
        )}
        {(email !== null || problem !== null) && (
          <Button look={email === null ? "plain" : "primary"} onClick={() => location.assign("/")}>
            {t("signing-in.confirm.open")}
          </Button>
        )}
      </div>
    </AuthLayout>
  );
}
