// Settings: the name and the email address of the account, with the dialogs that change them.
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { api, body, type Schemas } from "../../api/client";
import { queryClient, sessionQuery } from "../../api/queries";
import { maxDisplayName } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { useSignOut } from "../sidebar";
import {
  EmailField,
  FormFooter,
  noErrors,
  ReauthenticationDialog,
  sendsMail,
  useForm,
  useReauthentication,
} from "../sign-in";
import { Section } from "./section";
import { PendingEmail } from "./settings-pending-email";

export function Account() {
  const t = useMessages(settingsMessages);
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const signOut = useSignOut();
  const [open, setOpen] = useState<"name" | "email" | null>(null);
  const close = () => setOpen(null);
  const { display_name: name = "", email = "", pending_email: pending = null } = session?.account ?? {};
  return (
    <Section id="profile" title={t("pages.settings.account")}>
      <Detail label={t("pages.name")} value={name}>
        <Button onClick={() => setOpen("name")}>{t("settings.name.change")}</Button>
      </Detail>
      <Detail label={t("pages.email")} value={email || t("settings.no_email")}>
        <Button onClick={() => setOpen("email")}>{t("settings.email.change")}</Button>
      </Detail>
      {pending !== null && (
        <PendingEmail
          email={pending}
          expiresAt={session?.account.pending_email_expires_at ?? null}
          show={show}
          onCancelled={() => void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })}
        />
      )}
      <div className="py-3">
        <Button icon="leave" onClick={signOut}>
          {t("pages.sign_out")}
        </Button>
      </div>
      {open === "name" && <NameDialog before={name} onClose={close} />}
      {open === "email" && <EmailDialog before={email} onClose={close} />}
    </Section>
  );
}

function Detail({ label, value, children }: { label: string; value: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 py-3">
      <dl className="min-w-0 text-sm">
        <dt className="font-medium">{label}</dt>
        <dd className="text-soft wrap-anywhere">
          <bdi>{value}</bdi>
        </dd>
      </dl>
      {children}
    </div>
  );
}

/** Displays the changed account. The account feed notifies the other tabs and devices. */
function show(account: Schemas["Account"]): void {
  queryClient.setQueryData(sessionQuery.queryKey, (session) => session && { ...session, account });
}

interface ChangeProps {
  before: string;
  onClose: () => void;
}

function NameDialog({ before, onClose }: ChangeProps) {
  const t = useMessages(settingsMessages);
  const [name, setName] = useState(before);
  const entry = useForm(async () => {
    if (name.trim() === "") return entry.refuse({ ...noErrors, fields: { display_name: "pages.auth.name_missing" } });
    show(await body(api.PUT("/account/name", { body: { display_name: name.trim() } })));
    toast(t("settings.name.changed"));
    onClose();
  });
  return (
    <Dialog title={t("settings.name.change")} onClose={onClose}>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        <Field
          label={t("pages.name")}
          name="name"
          autoComplete="name"
          autoFocus
          maxLength={maxDisplayName}
          value={name}
          onChange={(event) => setName(event.target.value)}
          problem={entry.problem("display_name")}
        />
        <FormFooter entry={entry} extra={<Button onClick={onClose}>{t("pages.cancel")}</Button>}>
          {t("settings.name.change")}
        </FormFooter>
      </form>
    </Dialog>
  );
}

function EmailDialog({ before, onClose }: ChangeProps) {
  const t = useMessages(settingsMessages);
  const [email, setEmail] = useState(before);
  const proof = useReauthentication();
  const entry = useForm(() =>
    proof.run(async () => {
      const account = await body(api.PUT("/account/email", { body: { email: email.trim() } }));
      show(account);
      toast(t(account.pending_email === null ? "settings.email.changed" : "settings.email.requested"));
      onClose();
    }),
  );
  return (
    <Dialog
      title={t("settings.email.change")}
      description={t(sendsMail ? "settings.email.confirm_hint" : "settings.email.change_hint")}
      onClose={onClose}
    >
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        <EmailField email={email} setEmail={setEmail} autoFocus problem={entry.problem("email")} />
        <FormFooter entry={entry} extra={<Button onClick={onClose}>{t("pages.cancel")}</Button>}>
          {t("settings.email.change")}
        </FormFooter>
      </form>
      <ReauthenticationDialog proof={proof} />
    </Dialog>
  );
}
