// The page for signing in and registering.
import { useEffect, useState } from "react";
import { handleSignIn } from "../../api/session-state";
import { api, body } from "../../api/client";
import { reportedErasure } from "../../api/erasure";
import { maxDisplayName, minPassword } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Field, PasswordField } from "../../controls/field";
import { useMessages } from "../../messages/localization";
import { signingInMessages } from "../../messages/signing-in";
import { noErrors } from "./form-errors";
import { EmailField, LoginForm, type EmailProps } from "./login-form";
import { FormError } from "../../controls/form-error";
import { FormFooter, useForm } from "./password-form";
import { AuthLayout } from "./auth-layout";
import { ForgotForm } from "./forgot-form";
import { sendsMail } from "./mail-links";
import { PasskeySignIn } from "./passkey-button";
import { ProviderLinks } from "./providers";
import { providerFailure } from "./provider-failure";

const registrationOpen =
  document.querySelector<HTMLMetaElement>('meta[name="turnstone-registration"]')?.content !== "false";

const titles = {
  sign_in: "pages.sign_in.title",
  register: "signing-in.register.title",
  forgot: "signing-in.forgot.title",
} as const;

type FormName = keyof typeof titles;

/** The fragments that address the forms other than that for signing in. */
const fragments: Readonly<Record<string, FormName>> = { "#create-account": "register", "#forgot-password": "forgot" };

/** Returns the form that the URL addresses, and the function that shows one, so that Back returns to the one before. */
function useAddressedForm(): [FormName, (form: FormName) => void] {
  const read = (): FormName => fragments[location.hash] ?? "sign_in";
  const [form, setForm] = useState(read);
  useEffect(() => {
    const changed = () => setForm(read);
    window.addEventListener("popstate", changed);
    return () => {
      window.removeEventListener("popstate", changed);
      // The page that is shown after signing in has no such fragment.
      if (location.hash in fragments) history.replaceState(history.state, "", location.pathname + location.search);
    };
  }, []);
  const show = (next: FormName) => {
    const [fragment = ""] = Object.entries(fragments).find(([, name]) => name === next) ?? [];
    history.pushState(history.state, "", location.pathname + location.search + fragment);
    setForm(next);
  };
  return [form, show];
}

export function SignIn() {
  const t = useMessages(signingInMessages);
  const [form, setForm] = useAddressedForm();
  const registering = form === "register";
  const [email, setEmail] = useState("");
  const erasure = reportedErasure();
  return (
    <AuthLayout>
      <title>{`${t(titles[form])} · ${t("app.name")}`}</title>
      <h1 className="text-xl font-semibold">{t(titles[form])}</h1>
      <p className="mt-1 text-soft">{t(form === "forgot" ? "signing-in.forgot.hint" : "signing-in.sign_in.tagline")}</p>
      <div className="mt-8 flex flex-col gap-6">
        {erasure !== null && <Erased id={erasure} />}
        {providerFailure !== null && (
          <div role="alert">
            <FormError>{t(providerFailure)}</FormError>
          </div>
        )}
        {form === "register" && <Register email={email} setEmail={setEmail} />}
        {form === "forgot" && <ForgotForm email={email} setEmail={setEmail} />}
        {form === "sign_in" && <LoginForm email={email} setEmail={setEmail} focus="email" />}
        {form === "sign_in" && sendsMail && (
          <p className="-mt-2 text-center text-sm">
            <Quiet onClick={() => setForm("forgot")}>{t("signing-in.forgot.link")}</Quiet>
          </p>
        )}
        {form === "sign_in" && <PasskeySignIn onSignIn={handleSignIn} />}
        {form !== "forgot" && <ProviderLinks returnTo={location.pathname} />}
        {form === "forgot" && (
          <p className="text-center text-sm">
            <Quiet onClick={() => setForm("sign_in")}>{t("signing-in.forgot.back")}</Quiet>
          </p>
        )}
        {registrationOpen && form !== "forgot" && (
          <p className="text-center text-sm text-soft">
            {t(registering ? "signing-in.register.have_account" : "signing-in.sign_in.new")}{" "}
            <Quiet onClick={() => setForm(registering ? "sign_in" : "register")}>
              {t(registering ? "pages.sign_in.title" : "signing-in.register.title")}
            </Quiet>
          </p>
        )}
      </div>
    </AuthLayout>
  );
}

/** A button that looks like a link: it shows another form. */
function Quiet({ onClick, children }: { onClick: () => void; children: string }) {
  return (
    <Button look="quiet" className="text-accent underline underline-offset-4" onClick={onClick}>
      {children}
    </Button>
  );
}

/** Reports the erasure of the account that was signed in before. */
function Erased({ id }: { id: string }) {
  const t = useMessages(signingInMessages);
  return (
    <div role="status" className="flex flex-col gap-2 rounded-md bg-accent-wash px-3 py-2 text-sm">
      <p>{t("signing-in.data.erased")}</p>
      <p>
        {t("signing-in.data.erased.reference")} <code className="font-mono wrap-anywhere select-all">{id}</code>
      </p>
    </div>
  );
}

function Register({ email, setEmail }: EmailProps) {
  const t = useMessages(signingInMessages);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const entry = useForm(async () => {
    if ([...password].length < minPassword)
      return entry.refuse({ ...noErrors, fields: { password: "pages.auth.password_short" } });
    handleSignIn(
      await body(
        api.POST("/auth/register", {
          body: { email: email.trim(), password, ...(name.trim() === "" ? {} : { display_name: name.trim() }) },
        }),
      ),
    );
  }, true);
  return (
    <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
      <Field
        label={t("pages.name")}
        name="name"
        autoComplete="name"
        maxLength={maxDisplayName}
        hint={t("signing-in.name.hint")}
        value={name}
        onChange={(event) => setName(event.target.value)}
        problem={entry.problem("display_name")}
      />
      <EmailField email={email} setEmail={setEmail} problem={entry.problem("email")} />
      <PasswordField
        label={t("pages.password")}
        name="password"
        autoComplete="new-password"
        required
        hint={t("pages.password.hint")}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        problem={entry.problem("password")}
      />
      <FormFooter entry={entry}>{t("signing-in.register.title")}</FormFooter>
    </form>
  );
}
