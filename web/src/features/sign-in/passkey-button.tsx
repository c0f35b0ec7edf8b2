// The button that uses a passkey, with the reason below it if that fails.
import { useState } from "react";
import { Refusal } from "../../api/client";
import { passkeysSupported } from "../../api/passkeys";
import { Button } from "../../controls/button";
import { useMessages } from "../../messages/localization";
import { formErrorsOf } from "./form-errors";
import { FormError } from "../../controls/form-error";
import { signingInMessages, type SigningInMessageKey } from "../../messages/signing-in";

/** Returns why a passkey was not used or added. Throws other errors. */
export function passkeyFailure(error: unknown): SigningInMessageKey {
  if (error instanceof DOMException)
    return error.name === "InvalidStateError" ? "pages.passkeys.exists" : "pages.passkeys.cancelled";
  if (!(error instanceof Refusal)) throw error;
  if (error.status === 401 || error.status === 422) return "pages.passkeys.refused";
  return formErrorsOf(error, false).form ?? "pages.passkeys.refused";
}

/** use: asks for the passkey and continues after that. Rendered only in pages that can use passkeys. */
export function PasskeyButton({ label, use }: { label: string; use: () => Promise<void> }) {
  const t = useMessages(signingInMessages);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<SigningInMessageKey | null>(null);
  if (!passkeysSupported) return null;
  const press = async () => {
    if (busy) return;
    setBusy(true);
    setFailure(null);
    try {
      await use();
    } catch (error) {
      setFailure(passkeyFailure(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="flex flex-col gap-2">
      <Button
        icon="key"
        className="min-h-11 aria-disabled:opacity-70"
        aria-disabled={busy}
        onClick={() => void press()}
      >
        {busy ? t("pages.auth.busy") : label}
      </Button>
      <div role="alert" className="empty:hidden">
        {failure !== null && <FormError>{t(failure)}</FormError>}
      </div>
    </div>
  );
}

/** The button to sign in with a passkey. */
export function PasskeySignIn({ onSignIn }: { onSignIn: (session: SignedIn) => void }) {
  const t = useMessages(signingInMessages);
  const use = async () => onSignIn(await (await import("../../api/passkey-requests")).signInWithPasskey());
  return <PasskeyButton label={t("pages.passkeys.sign_in")} use={use} />;
}

type SignedIn = Awaited<ReturnType<(typeof import("../../api/passkey-requests"))["signInWithPasskey"]>>;
