// The form to sign in with an email address and a password, on the sign-in page and in the dialog to sign in again.
import { useState } from "react";
import { api, body } from "../../api/client";
import { handleSignIn } from "../../api/session-state";
import { Field, PasswordField } from "../../controls/field";
import { onTouchScreen } from "../../controls/media";
import { useMessages } from "../../messages/localization";
import { FormFooter, useForm } from "./password-form";
import { signingInMessages } from "../../messages/signing-in";

export interface EmailProps {
  email: string;
  setEmail: (email: string) => void;
  hint?: string | undefined;
}

/** autoFocus: takes the focus when it appears, except on touch screens, where that opens a keyboard. */
export function EmailField({
  email,
  setEmail,
  hint,
  problem,
  autoFocus = false,
}: EmailProps & { problem: string | undefined; autoFocus?: boolean }) {
  const t = useMessages(signingInMessages);
  return (
    <Field
      label={t("pages.email")}
      name="email"
      autoFocus={autoFocus && !onTouchScreen()}
      type="email"
      autoComplete="username"
      spellCheck={false}
      autoCapitalize="none"
      dir="ltr"
      required
      value={email}
      onChange={(event) => setEmail(event.target.value)}
      hint={hint}
      problem={problem}
    />
  );
}

/** focus: the field that takes the focus when the form appears. */
export function LoginForm({ focus, ...of }: EmailProps & { focus: "email" | "password" }) {
  const t = useMessages(signingInMessages);
  const [password, setPassword] = useState("");
  const entry = useForm(async () =>
    handleSignIn(await body(api.POST("/auth/login", { body: { email: of.email.trim(), password } }))),
  );
  return (
    <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
      <EmailField {...of} autoFocus={focus === "email"} problem={entry.problem("email")} />
      <PasswordField
        label={t("pages.password")}
        name="password"
        autoComplete="current-password"
        autoFocus={focus === "password"}
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        problem={entry.problem("password")}
      />
      <FormFooter entry={entry}>{t("pages.sign_in.title")}</FormFooter>
    </form>
  );
}
