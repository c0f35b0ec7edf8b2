// The dialog to sign in again after the session has ended. The page behind it keeps its state. After a sign-in with
// another account, the app loads its start page.
import { useEffect, useState } from "react";
import { handleSignIn } from "../../api/session-state";
import { fetchSession } from "../../api/client";
import { Dialog } from "../../controls/dialog";
import { useMessages } from "../../messages/localization";
import { signingInMessages } from "../../messages/signing-in";
import { LoginForm } from "./login-form";
import { PasskeySignIn } from "./passkey-button";
import { ProviderLinks } from "./providers";

export function SignInAgain({ email: before }: { email: string }) {
  const t = useMessages(signingInMessages);
  const [email, setEmail] = useState(before);
  useSessionCheckWhenVisible();
  return (
    <Dialog title={t("signing-in.session_expired.title")} description={t("signing-in.session_expired.description")}>
      <LoginForm
        email={email}
        setEmail={setEmail}
        hint={
          email.trim().toLowerCase() === before.toLowerCase()
            ? undefined
            : t("signing-in.session_expired.other_account")
        }
        focus="password"
      />
      <PasskeySignIn onSignIn={handleSignIn} />
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
