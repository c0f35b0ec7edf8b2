// Reauthentication: if an operation needs a recent sign-in, asks for the password or a passkey and runs the operation
// again.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { api, body, forgetToken, Refusal } from "../../api/client";
import { passkeysQuery } from "../../api/passkeys";
import { queryClient, sessionQuery } from "../../api/queries";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { PasswordField } from "../../controls/field";
import { useMessages } from "../../messages/localization";
import { PasskeyButton } from "./passkey-button";
import { ProviderLinks } from "./providers";
import { FormFooter, useForm } from "./password-form";
import { signingInMessages } from "../../messages/signing-in";

interface PendingOperation {
  run: () => Promise<void>;
  resolve: () => void;
  reject: (refusal: unknown) => void;
}

export interface Reauthentication {
  /**
   * Runs an operation. If the service requires a recent sign-in, asks for the password and runs it again. Settles when
   * it has run or the user has given up.
   */
  run: (run: () => Promise<void>) => Promise<void>;
  waiting: PendingOperation | null;
  close: () => void;
}

export function useReauthentication(): Reauthentication {
  const [waiting, setWaiting] = useState<PendingOperation | null>(null);
  const withProof = useCallback(async (run: () => Promise<void>) => {
    try {
      await run();
    } catch (refusal) {
      if (!(refusal instanceof Refusal) || refusal.code !== "reauth_required") throw refusal;
      await new Promise<void>((resolve, reject) => setWaiting({ run, resolve, reject }));
    }
  }, []);
  const end = useCallback(() => setWaiting(null), []);
  return { run: withProof, waiting, close: end };
}

/** The password dialog, while an operation waits for reauthentication. */
export function ReauthenticationDialog({ proof }: { proof: Reauthentication }) {
  return proof.waiting === null ? null : <PasswordForm waiting={proof.waiting} end={proof.close} />;
}

function PasswordForm({ waiting, end }: { waiting: PendingOperation; end: () => void }) {
  const t = useMessages(signingInMessages);
  const [password, setPassword] = useState("");
  const { data: passkeys } = useQuery(passkeysQuery);
  const entry = useForm(async () => {
    const session = await body(api.POST("/auth/reauthenticate", { body: { password } }));
    forgetToken(); // reauthentication replaced the CSRF token
    queryClient.setQueryData(sessionQuery.queryKey, session);
    goOn();
  });
  const goOn = () => {
    end();
    waiting.run().then(waiting.resolve, waiting.reject);
  };
  const giveUp = () => {
    end();
    waiting.resolve();
  };
  return (
    <Dialog
      title={t("pages.reauthenticate.title")}
      description={t("pages.reauthenticate.description")}
      onClose={giveUp}
    >
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        <PasswordField
          label={t("pages.password")}
          autoComplete="current-password"
          autoFocus
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          problem={entry.refused.fields.password && t("pages.auth.current_wrong")}
        />
        <FormFooter entry={entry} extra={<Button onClick={giveUp}>{t("pages.cancel")}</Button>}>
          {t("pages.reauthenticate.confirm")}
        </FormFooter>
      </form>
      {passkeys !== undefined && passkeys.length > 0 && (
        <PasskeyButton
          label={t("pages.passkeys.confirm")}
          use={async () => {
            await (await import("../../api/passkey-requests")).confirmWithPasskey();
            goOn();
          }}
        />
      )}
      <ProviderLinks returnTo="/settings" />
    </Dialog>
  );
}
