// Settings: the passkeys of the account, with the dialogs that add, rename and remove them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { addPasskey, removePasskey, renamePasskey } from "../../api/passkey-requests";
import { passkeysQuery, type Passkey } from "../../api/passkeys";
import { Button, IconButton } from "../../controls/button";
import { Field } from "../../controls/field";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { useLocalization } from "../../messages/localization";
import { ConfirmedForm } from "../sign-in";
import { parseUserAgent } from "./user-agent";

type Opened = { what: "add" } | { what: "rename" | "remove"; passkey: Passkey };

export function Passkeys() {
  const { t } = useLocalization();
  const { data, isError, refetch } = useQuery(passkeysQuery);
  const [opened, setOpened] = useState<Opened | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const removed = useRef(false);
  useEffect(() => {
    // The pressed button was removed with its passkey; the list takes the focus.
    if (removed.current && document.activeElement === document.body) list.current?.focus();
    removed.current = false;
  }, [data]);
  const close = () => setOpened(null);
  if (isError && data === undefined) return <NotLoaded again={refetch}>{t("pages.passkeys.not_loaded")}</NotLoaded>;
  return (
    <>
      <ul ref={list} tabIndex={-1} aria-label={t("pages.passkeys.title")} className="divide-y divide-line outline-none">
        {data?.map((passkey) => (
          <Row key={passkey.passkey_id} passkey={passkey} open={(what) => setOpened({ what, passkey })} />
        ))}
        {data?.length === 0 && <li className="py-3 text-sm text-soft">{t("pages.passkeys.empty")}</li>}
      </ul>
      <Button icon="key" className="my-3 w-fit" onClick={() => setOpened({ what: "add" })}>
        {t("pages.passkeys.add")}
      </Button>
      {opened?.what === "add" && <AddDialog onClose={close} />}
      {opened?.what === "rename" && <RenameDialog passkey={opened.passkey} onClose={close} />}
      {opened?.what === "remove" && (
        <RemoveDialog passkey={opened.passkey} onRemoved={() => (removed.current = true)} onClose={close} />
      )}
    </>
  );
}

function Row({ passkey, open }: { passkey: Passkey; open: (what: "rename" | "remove") => void }) {
  const { t, intl } = useLocalization();
  const added = t("pages.passkeys.added_on", { when: intl.formatDate(passkey.created_at, { dateStyle: "medium" }) });
  return (
    <li className="flex items-center gap-3 py-3">
      <span className="text-soft">
        <Icon name="key" />
      </span>
      <span className="flex min-w-0 grow flex-col text-sm">
        <span dir="auto" className="font-medium [text-align:match-parent] wrap-anywhere">
          {passkey.name}
        </span>
        <span className="text-soft">{added}</span>
        <span className="text-soft">
          {passkey.last_used_at === null
            ? t("pages.passkeys.unused")
            : t("pages.devices.used", {
                when: intl.formatDate(passkey.last_used_at, { dateStyle: "medium", timeStyle: "short" }),
              })}
        </span>
      </span>
      <IconButton icon="edit" label={t("pages.passkeys.rename")} target={passkey.name} onClick={() => open("rename")} />
      <IconButton
        icon="trash"
        label={t("pages.passkeys.remove")}
        target={passkey.name}
        onClick={() => open("remove")}
      />
    </li>
  );
}

function NameField({ name, setName }: { name: string; setName: (name: string) => void }) {
  const { t } = useLocalization();
  return (
    <Field
      label={t("pages.passkeys.name")}
      dir="auto"
      autoComplete="off"
      autoFocus
      required
      maxLength={100}
      value={name}
      onChange={(event) => setName(event.target.value)}
    />
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const { t } = useLocalization();
  const { browser, system } = parseUserAgent(navigator.userAgent);
  const [name, setName] = useState(
    browser !== null && system !== null ? t("pages.devices.name", { browser, system }) : t("pages.passkeys.default"),
  );
  return (
    <ConfirmedForm
      title={t("pages.passkeys.add")}
      description={t("pages.passkeys.add_hint")}
      action={t("pages.passkeys.continue")}
      reasons={{ 409: "pages.passkeys.limit" }}
      run={async () => {
        await addPasskey(name.trim());
        toast(t("pages.passkeys.added"));
      }}
      onClose={onClose}
    >
      <NameField name={name} setName={setName} />
    </ConfirmedForm>
  );
}

function RenameDialog({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const { t } = useLocalization();
  const [name, setName] = useState(passkey.name);
  return (
    <ConfirmedForm
      title={t("pages.passkeys.rename")}
      action={t("pages.passkeys.save")}
      reasons={{ 404: "pages.passkeys.gone", 422: "pages.passkeys.name_invalid" }}
      run={() => renamePasskey(passkey.passkey_id, name.trim())}
      onClose={onClose}
    >
      <NameField name={name} setName={setName} />
    </ConfirmedForm>
  );
}

function RemoveDialog(of: { passkey: Passkey; onRemoved: () => void; onClose: () => void }) {
  const { t } = useLocalization();
  return (
    <ConfirmedForm
      title={t("pages.passkeys.remove_title", { name: of.passkey.name })}
      description={t("pages.passkeys.remove_hint")}
      action={t("pages.passkeys.remove")}
      look="danger"
      reasons={{ 404: "pages.passkeys.gone", 409: "pages.passkeys.last" }}
      run={async () => {
        await removePasskey(of.passkey.passkey_id);
        of.onRemoved();
        toast(t("pages.passkeys.removed"));
      }}
      onClose={of.onClose}
    />
  );
}
