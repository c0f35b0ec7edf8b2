// Settings: the passkeys of the account, with the dialogs that add, rename and remove them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { addPasskey, removePasskey, renamePasskey } from "../../api/passkey-requests";
import { passkeysQuery, type Passkey } from "../../api/passkeys";
import { maxPasskeyName } from "../../generated/limits";
import { Button, IconButton } from "../../controls/button";
import { Field } from "../../controls/field";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { ConfirmedForm } from "../sign-in";
import { parseUserAgent } from "./user-agent";

type Opened = { what: "add" } | { what: "rename" | "remove"; passkey: Passkey };

export function Passkeys() {
  const t = useMessages(settingsMessages);
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
  if (isError && data === undefined) return <NotLoaded again={refetch}>{t("settings.passkeys.not_loaded")}</NotLoaded>;
  return (
    <>
      <ul
        ref={list}
        tabIndex={-1}
        aria-label={t("settings.passkeys.title")}
        className="divide-y divide-line outline-none"
      >
        {data?.map((passkey) => (
          <Row key={passkey.passkey_id} passkey={passkey} open={(what) => setOpened({ what, passkey })} />
        ))}
        {data?.length === 0 && <li className="py-3 text-sm text-soft">{t("settings.passkeys.empty")}</li>}
      </ul>
      <Button icon="key" className="my-3 w-fit" onClick={() => setOpened({ what: "add" })}>
        {t("settings.passkeys.add")}
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
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const added = t("settings.passkeys.added_on", { when: intl.formatDate(passkey.created_at, { dateStyle: "medium" }) });
  return (
    <li className="flex items-center gap-3 py-3">
      <span className="text-soft">
        <Icon name="key" />
      </span>
      <span className="flex min-w-0 grow flex-col text-sm">
        <span dir="auto" className="font-medium text-as-parent wrap-anywhere">
          {passkey.name}
        </span>
        <span className="text-soft">{added}</span>
        <span className="text-soft">
          {passkey.last_used_at === null
            ? t("settings.passkeys.unused")
            : t("settings.devices.used", {
                when: intl.formatDate(passkey.last_used_at, { dateStyle: "medium", timeStyle: "short" }),
              })}
        </span>
      </span>
      <IconButton
        icon="edit"
        label={t("settings.passkeys.rename")}
        target={passkey.name}
        onClick={() => open("rename")}
      />
      <IconButton
        icon="trash"
        label={t("settings.passkeys.remove")}
        target={passkey.name}
        onClick={() => open("remove")}
      />
    </li>
  );
}

function NameField({ name, setName }: { name: string; setName: (name: string) => void }) {
  const t = useMessages(settingsMessages);
  return (
    <Field
      label={t("settings.passkeys.name")}
      dir="auto"
      autoComplete="off"
      autoFocus
      required
      maxLength={maxPasskeyName}
      value={name}
      onChange={(event) => setName(event.target.value)}
    />
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const t = useMessages(settingsMessages);
  const { browser, system } = parseUserAgent(navigator.userAgent);
  const [name, setName] = useState(
    browser !== null && system !== null
      ? t("settings.devices.name", { browser, system })
      : t("settings.passkeys.default"),
  );
  return (
    <ConfirmedForm
      title={t("settings.passkeys.add")}
      description={t("settings.passkeys.add_hint")}
      action={t("settings.passkeys.continue")}
      reasons={{ 409: "pages.passkeys.limit" }}
      run={async () => {
        await addPasskey(name.trim());
        toast(t("settings.passkeys.added"));
      }}
      onClose={onClose}
    >
      <NameField name={name} setName={setName} />
    </ConfirmedForm>
  );
}

function RenameDialog({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const t = useMessages(settingsMessages);
  const [name, setName] = useState(passkey.name);
  return (
    <ConfirmedForm
      title={t("settings.passkeys.rename")}
      action={t("settings.passkeys.save")}
      reasons={{ 404: "pages.passkeys.gone", 422: "pages.passkeys.name_invalid" }}
      run={() => renamePasskey(passkey.passkey_id, name.trim())}
      onClose={onClose}
    >
      <NameField name={name} setName={setName} />
    </ConfirmedForm>
  );
}

function RemoveDialog(of: { passkey: Passkey; onRemoved: () => void; onClose: () => void }) {
  const t = useMessages(settingsMessages);
  return (
    <ConfirmedForm
      title={t("settings.passkeys.remove_title", { name: of.passkey.name })}
      description={t("settings.passkeys.remove_hint")}
      action={t("settings.passkeys.remove")}
      look="danger"
      reasons={{ 404: "pages.passkeys.gone", 409: "pages.passkeys.last" }}
      run={async () => {
        await removePasskey(of.passkey.passkey_id);
        of.onRemoved();
        toast(t("settings.passkeys.removed"));
      }}
      onClose={of.onClose}
    />
  );
}
