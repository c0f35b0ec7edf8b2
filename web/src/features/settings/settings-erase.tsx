// Settings: the dialog that erases the account. The service returns what would be erased, and the user types the email
// address to confirm it.
import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Refusal } from "../../api/client";
import { eraseAccount } from "../../api/erasure";
import type { Confirmation } from "../../api/problem";
import { sessionQuery } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { settingsMessages, type SettingsMessageKey } from "../../messages/settings";
import { useMessages } from "../../messages/localization";
import { DataRow } from "./data-row";
import { FormError } from "../../controls/form-error";
import { ReauthenticationDialog, useReauthentication } from "../sign-in";

const kinds = [
  "conversations",
  "messages",
  "follow_ups",
  "projects",
  "prompts",
  "files",
  "shares",
  "imports",
  "sessions",
  "passkeys",
] as const;

export function EraseAccount() {
  const t = useMessages(settingsMessages);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState(false);
  const proof = useReauthentication();
  const open = async () => {
    if (busy) return;
    setBusy(true);
    setFailed(false);
    try {
      // The first request, without a token, erases nothing.
      await proof.run(async () => setConfirmation(await eraseAccount()));
    } catch (error) {
      noticeSignOut(error);
      setFailed(true);
    }
    setBusy(false);
  };
  return (
    <DataRow
      title={t("settings.erase")}
      hint={t("settings.erase.hint")}
      action={
        <Button
          look="danger"
          icon="trash"
          className="aria-disabled:opacity-70"
          aria-disabled={busy}
          onClick={() => void open()}
        >
          {t("settings.erase.open")}
        </Button>
      }
    >
      <div role="status" className="not-empty:mt-3">
        {failed && <FormError>{t("settings.erase.failed")}</FormError>}
      </div>
      <ReauthenticationDialog proof={proof} />
      {confirmation !== null && <EraseDialog first={confirmation} onClose={() => setConfirmation(null)} />}
    </DataRow>
  );
}

function EraseDialog({ first, onClose }: { first: Confirmation; onClose: () => void }) {
  const t = useMessages(settingsMessages);
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const [confirmation, setConfirmation] = useState(first);
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<SettingsMessageKey | null>(null);
  const proof = useReauthentication();
  const close = () => busy || onClose();
  // An account that only signs in with a provider may have no address.
  const { email = "", display_name = "" } = session?.account ?? {};
  const expected = email || display_name;
  const confirmed = typed.trim().toLowerCase() === expected.trim().toLowerCase();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || !confirmed) return;
    setBusy(true);
    setProblem(null);
    let erased = false; // then this page is reloaded
    try {
      await proof.run(async () => {
        const changed = await eraseAccount(confirmation.token);
        erased = changed === null;
        if (changed === null) return;
        setConfirmation(changed);
        setProblem("settings.erase.changed");
      });
    } catch (error) {
      noticeSignOut(error);
      const unknown = error instanceof Refusal && error.outcomeUnknown;
      setProblem(unknown ? "settings.erase.outcome_unknown" : "settings.erase.failed");
    }
    if (!erased) setBusy(false);
  };
  return (
    <Dialog title={t("settings.erase.title")} description={t("settings.erase.description")} onClose={close}>
      <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-4">
        <ul className="list-disc ps-5 text-sm">
          {kinds
            .filter((kind) => (confirmation.will_delete[kind] ?? 0) > 0)
            .map((kind) => (
              <li key={kind}>{t(`settings.erase.count.${kind}`, { count: confirmation.will_delete[kind]! })}</li>
            ))}
        </ul>
        <p className="text-sm text-soft">{t("settings.erase.kept")}</p>
        {expected !== "" && (
          <Field
            autoFocus
            dir="auto"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            label={t(email !== "" ? "settings.erase.confirm_email" : "settings.erase.confirm_name")}
            hint={expected}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
        <div role="alert" className="empty:hidden">
          {problem !== null && <FormError>{t(problem)}</FormError>}
        </div>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={close}>{t("pages.cancel")}</Button>
          <Button type="submit" look="danger" icon="trash" disabled={!confirmed} aria-disabled={busy || undefined}>
            {busy ? t("pages.auth.busy") : t("settings.erase.do")}
          </Button>
        </div>
      </form>
      <ReauthenticationDialog proof={proof} />
    </Dialog>
  );
}
