// The page of the link in a mail that sets a new password.
import { useEffect, useState } from "react";
import { api } from "../../api/client";
import { handleSignOut } from "../../api/session-state";
import { minPassword } from "../../generated/limits";
import { Button } from "../../controls/button";
import { PasswordField } from "../../controls/field";
import { useMessages } from "../../messages/localization";
import { signingInMessages } from "../../messages/signing-in";
import { AuthLayout } from "./auth-layout";
import { ForgotForm } from "./forgot-form";
import { noErrors } from "./form-errors";
import { forgetLink, sendsMail, tokenIn, useNewLink } from "./mail-links";
import { FormError } from "../../controls/form-error";
import { FormFooter, useForm } from "./password-form";

export function ResetPassword() {
  const t = useMessages(signingInMessages);
  useNewLink();
  const [token] = useState(() => tokenIn(location.hash));
  const [state, setState] = useState<"open" | "done" | "invalid">(token === null ? "invalid" : "open");
  const [email, setEmail] = useState("");
  return (
    <AuthLayout>
      <title>{`${t("signing-in.reset.title")} · ${t("app.name")}`}</title>
      <h1 className="text-xl font-semibold">{t("signing-in.reset.title")}</h1>
      <div className="mt-6 flex flex-col gap-6">
        {state === "open" && token !== null && (
          <NewPassword token={token} onDone={() => setState("done")} onInvalid={() => setState("invalid")} />
        )}
        {state === "done" && (
          <>
            <div role="status" className="flex flex-col gap-2">
              <p>{t("signing-in.reset.done")}</p>
              <p className="text-soft">{t("signing-in.reset.others_stay")}</p>
            </div>
            <Button look="primary" autoFocus onClick={() => handleSignOut()}>
              {t("pages.sign_in.title")}
            </Button>
          </>
        )}
        {state === "invalid" && (
          <>
            <div role="alert">
              <FormError>{t("pages.mail_link.invalid")}</FormError>
            </div>
            {sendsMail && (
              <>
                <p className="text-soft">{t("signing-in.forgot.hint")}</p>
                <ForgotForm email={email} setEmail={setEmail} />
              </>
            )}
          </>
        )}
      </div>
    </AuthLayout>
  );
}

interface NewPasswordProps {
  token: string;
  onDone: () => void;
  onInvalid: () => void;
}

function NewPassword({ token, onDone, onInvalid }: NewPasswordProps) {
  const t = useMessages(signingInMessages);
  const [password, setPassword] = useState("");
  const entry = useForm(async () => {
    if ([...password].length < minPassword)
      return entry.refuse({ ...noErrors, fields: { password: "pages.auth.password_short" } });
    await api.POST("/auth/password/reset", { body: { token, password } });
    forgetLink();
    onDone();
  });
  const invalid = entry.refused.fields.token !== undefined;
  useEffect(() => {
    if (invalid) onInvalid();
  }, [invalid, onInvalid]);
  return (
    <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
      <PasswordField
        label={t("pages.password.new")}
        name="password"
        hint={t("pages.password.hint")}
        autoComplete="new-password"
        autoFocus
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        problem={entry.problem("password")}
      />
      <p className="text-sm text-soft">
        {t("signing-in.reset.signs_out")} {t("signing-in.reset.others_stay")}
      </p>
      <FormFooter entry={entry}>{t("signing-in.reset.action")}</FormFooter>
    </form>
  );
}
