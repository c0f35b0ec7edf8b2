// Settings: the dialog that changes the password, which signs out all other devices.
import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, body, forgetToken } from "../../api/client";
import { refetchInAllTabs, queryClient, sessionQuery } from "../../api/queries";
import { minPassword } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field, PasswordField } from "../../controls/field";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { FormFooter, noErrors, providers, ReauthenticationDialog, useForm, useReauthentication } from "../sign-in";

export function ChangePassword() {
  const t = useMessages(settingsMessages);
  const [open, setOpen] = useState(false);
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 py-3">
      <span className="text-sm font-medium">{t("pages.password")}</span>
      <Button onClick={() => setOpen(true)}>{t("settings.password.change")}</Button>
      {open && <PasswordDialog onClose={() => setOpen(false)} />}
    </div>
  );
}

function PasswordDialog({ onClose }: { onClose: () => void }) {
  const t = useMessages(settingsMessages);
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const proof = useReauthentication();
  const entry = useForm(async () => {
    if ([...next].length < minPassword)
      return entry.refuse({ ...noErrors, fields: { new_password: "pages.auth.password_short" } });
    await proof.run(async () => {
      const renewed = await body(
        api.POST("/auth/password", {
          body: { new_password: next, ...(current === "" ? {} : { current_password: current }) },
        }),
      );
      forgetToken();
      queryClient.setQueryData(sessionQuery.queryKey, renewed);
      void refetchInAllTabs("devices");
      toast(t("settings.password.changed"));
      onClose();
    });
  });
  return (
    <Dialog title={t("settings.password.change")} description={t("settings.password.signs_out")} onClose={onClose}>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        {/* Password managers need the user name. */}
        <Field
          hidden
          className="hidden"
          label={t("pages.email")}
          type="email"
          autoComplete="username"
          readOnly
          value={session?.account.email ?? ""}
        />
        <PasswordField
          label={t("settings.password.current")}
          hint={providers.length > 0 ? t("settings.password.none") : undefined}
          autoComplete="current-password"
          autoFocus
          required={providers.length === 0}
          value={current}
          onChange={(event) => setCurrent(event.target.value)}
          problem={entry.problem("current_password")}
        />
        <PasswordField
          label={t("pages.password.new")}
          hint={t("pages.password.hint")}
          autoComplete="new-password"
          required
          value={next}
          onChange={(event) => setNext(event.target.value)}
          problem={entry.problem("new_password") ?? entry.problem("email")}
        />
        <FormFooter entry={entry} extra={<Button onClick={onClose}>{t("pages.cancel")}</Button>}>
          {t("settings.password.change")}
        </FormFooter>
      </form>
      <ReauthenticationDialog proof={proof} />
    </Dialog>
  );
}
