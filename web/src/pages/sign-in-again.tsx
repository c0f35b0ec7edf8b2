// The dialog to sign in again after the session has ended. The page behind it keeps its state. After a sign-in with
// another account, the app loads its start page.
import { useEffect, useState } from "react";
import { handleSignIn } from "../api/session-state";
import { api, fetchSession, body } from "../api/client";
import { Dialog } from "../controls/dialog";
import { Field, PasswordField } from "../controls/field";
import { useLocalization } from "../messages/localization";
import { ProviderLinks } from "./providers";
import { FormFooter, useForm } from "./password-form";

export function SignInAgain({ email: before }: { email: string }) {
  const { t } = useLocalization();
  const [email, setEmail] = useState(before);
  const [password, setPassword] = useState("");
  useSessionCheckWhenVisible();
  const entry = useForm(async () =>
    handleSignIn(await body(api.POST("/auth/login", { body: { email: email.trim(), password } }))),
  );
  return (
    <Dialog title={t("pages.again.title")} description={t("pages.again.why")}>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        <Field
          label={t("pages.email")}
          name="email"
          type="email"
          autoComplete="username"
          spellCheck={false}
          autoCapitalize="none"
          dir="ltr"
          required
          value={email}
          onChange={(event) => setEmail(event.target.value)}
          hint={email.trim().toLowerCase() === before.toLowerCase() ? undefined : t("pages.again.other")}
          problem={entry.problem("email")}
        />
        <PasswordField
          label={t("pages.password")}
          name="password"
          autoComplete="current-password"
          autoFocus
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          problem={entry.problem("password")}
        />
        <FormFooter entry={entry}>{t("pages.sign_in.title")}</FormFooter>
      </form>
      <ProviderLinks returnTo="/" newTab />
    </Dialog>
  );
}

/** Checks the session when this tab becomes visible: the user may have signed in with a provider in another tab. */
function useSessionCheckWhenVisible(): void {
  useEffect(() => {
    const checkSession = () => {
      if (!document.hidden) void fetchSession().then(handleSignIn, () => {});
    };
    document.addEventListener("visibilitychange", checkSession);
    return () => document.removeEventListener("visibilitychange", checkSession);
  }, []);
}
