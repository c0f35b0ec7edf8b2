// Settings: the form that changes the password, which signs out all other devices.
import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, body, forgetToken } from "../api/client";
import { refetchInAllTabs, queryClient, sessionQuery } from "../api/queries";
import { Field, PasswordField } from "../controls/field";
import { toast } from "../controls/toast";
import { useLocalization } from "../messages/localization";
import { ReauthenticationDialog, useReauthentication } from "./reauthenticate";
import { providers } from "./providers";
import { noErrors, minPasswordLength } from "./form-errors";
import { FormFooter, useForm } from "./password-form";

export function ChangePassword() {
  const { t } = useLocalization();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const proof = useReauthentication();
  const entry = useForm(async () => {
    if ([...next].length < minPasswordLength)
      return entry.refuse({ ...noErrors, fields: { new_password: "pages.auth.password_short" } });
    await proof.run(async () => {
      const renewed = await body(
        api.POST("/auth/password", {
          body: { new_password: next, ...(current === "" ? {} : { current_password: current }) },
        }),
      );
      forgetToken();
      queryClient.setQueryData(sessionQuery.queryKey, renewed);
      setCurrent("");
      setNext("");
      void refetchInAllTabs("devices");
      toast(t("pages.password.changed"));
    });
  });
  return (
    <>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex max-w-88 flex-col gap-4">
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
          label={t("pages.password.current")}
          hint={providers.length > 0 ? t("pages.password.none") : undefined}
          autoComplete="current-password"
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
        <FormFooter entry={entry}>{t("pages.password.change")}</FormFooter>
      </form>
      <ReauthenticationDialog proof={proof} />
    </>
  );
}
