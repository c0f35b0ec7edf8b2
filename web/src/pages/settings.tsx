// The settings page: settings of the account and of this device. A change is stored at once; there is no save button.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { sessionQuery, settingsQuery } from "../api/queries";
import { Button } from "../controls/button";
import { Check, Choice, Select } from "../controls/form-controls";
import { useDevice } from "../controls/device";
import { Icon } from "../controls/icon";
import { requestAction, onMac, formatKeys } from "../keys/keys";
import { useLocalization } from "../messages/localization";
import { languages } from "../messages/catalog";
import { About } from "./settings-about";
import { Section } from "./section";
import { SettingsConflictDialog } from "./settings-conflict";
import { Devices } from "./settings-devices";
import { ChangePassword } from "./settings-password";
import type { Change } from "./settings-merge";
import { change, useSettingsStore } from "./settings-store";
import { useSignOut } from "../sidebar/sign-out";
import { PageTitle } from "./title";

export function SettingsPage() {
  const { t } = useLocalization();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className="min-h-0 grow overflow-y-auto">
      <PageTitle name={t("pages.settings.title")} />
      <div className="mx-auto flex w-full max-w-160 flex-col gap-12 px-5 pt-4 pb-24">
        <h1 ref={heading} tabIndex={-1} className="text-xl font-semibold outline-none">
          {t("pages.settings.title")}
        </h1>
        <Profile />
        <Preferences />
        <ThisDevice />
        <Section title={t("pages.password.change")}>
          <ChangePassword />
        </Section>
        <Section title={t("pages.devices.title")} hint={t("pages.devices.hint")}>
          <Devices />
        </Section>
        <About />
      </div>
      <SettingsConflictDialog />
    </div>
  );
}

function Profile() {
  const { t } = useLocalization();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const signOut = useSignOut();
  return (
    <Section title={t("pages.settings.account")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-soft">{t("pages.name")}</dt>
        <dd className="wrap-anywhere">
          <bdi>{session?.account.display_name}</bdi>
        </dd>
        <dt className="text-soft">{t("pages.email")}</dt>
        <dd className="wrap-anywhere">
          <bdi>{session?.account.email || t("pages.settings.no_email")}</bdi>
        </dd>
      </dl>
      <Button icon="leave" className="w-fit" onClick={signOut}>
        {t("pages.sign_out")}
      </Button>
    </Section>
  );
}

function Preferences() {
  const { t, language } = useLocalization();
  const { data: stored, isError, refetch } = useQuery(settingsQuery);
  const pending = useSettingsStore((store) => store.pending);
  const settings = stored && { ...stored, ...pending };
  if (isError && settings === undefined) {
    return (
      <Section title={t("pages.settings.appearance")} hint={t("pages.settings.not_loaded")}>
        <Button icon="retry" className="w-fit" onClick={() => void refetch()}>
          {t("pages.retry")}
        </Button>
      </Section>
    );
  }
  if (settings === undefined)
    return (
      <p role="status" className="text-sm text-soft">
        {t("pages.list.loading")}
      </p>
    );
  const put = (wanted: Change) => void change(wanted, language);
  const enter = (keys: string) => formatKeys(keys, onMac);
  return (
    <>
      <Section title={t("pages.settings.appearance")}>
        <Choice
          label={t("pages.theme")}
          value={settings.theme}
          onChange={(theme) => put({ theme })}
          options={(["system", "light", "dark"] as const).map((value) => ({ value, label: t(`pages.theme.${value}`) }))}
        />
        <Select
          label={t("pages.language")}
          value={language}
          onChange={(wanted) => put({ language: wanted })}
          options={Object.entries(languages).map(([value, { name }]) => ({ value, label: name, lang: value }))}
        />
      </Section>
      <Section title={t("pages.settings.writing")}>
        <Choice
          label={t("pages.send_key")}
          value={settings.send_key}
          onChange={(send_key) => put({ send_key })}
          options={[
            { value: "enter", label: enter("Enter"), hint: t("pages.send_key.enter", { keys: enter("Shift+Enter") }) },
            {
              value: "mod_enter",
              label: enter("Mod+Enter"),
              hint: t("pages.send_key.mod_enter", { keys: enter("Enter") }),
            },
          ]}
        />
        <Choice
          label={t("pages.busy")}
          value={settings.busy_action}
          onChange={(busy_action) => put({ busy_action })}
          options={(["queue", "steer", "interrupt"] as const).map((value) => ({
            value,
            label: t(`pages.busy.${value}`),
            hint: t(`pages.busy.${value}_hint`),
          }))}
        />
        <Choice
          label={t("pages.profile")}
          value={settings.default_profile}
          onChange={(default_profile) => put({ default_profile })}
          options={(["auto", "balanced", "deep_reasoning", "coding"] as const).map((value) => ({
            value,
            label: t(`pages.profile.${value}`),
            hint: t(`pages.profile.${value}_hint`),
          }))}
        />
      </Section>
      <SaveStatus />
    </>
  );
}

/** Announces to screen readers that changes are stored, and displays a failure. */
function SaveStatus() {
  const { t } = useLocalization();
  const { refusal, storedAt: stored } = useSettingsStore();
  return (
    <div role="status" className={refusal === null ? "sr-only" : ""}>
      {refusal !== null ? (
        <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
          <Icon name="warning" size={16} />
          {t(refusal.outcomeUnknown ? "pages.settings.outcome_unknown" : "pages.settings.refused")}
        </p>
      ) : (
        stored > 0 && t("pages.settings.stored")
      )}
    </div>
  );
}

function ThisDevice() {
  const { t } = useLocalization();
  const device = useDevice();
  return (
    <Section title={t("pages.device.title")} hint={t("pages.device.hint")}>
      <Choice
        label={t("pages.announce")}
        value={device.announce}
        onChange={(announce) => useDevice.setState({ announce })}
        options={(["end", "sentences", "off"] as const).map((value) => ({
          value,
          label: t(`pages.announce.${value}`),
        }))}
      />
      <Check
        label={t("pages.keys.letters")}
        hint={t("pages.keys.letters_hint")}
        checked={device.letterShortcuts}
        onChange={(letters) => useDevice.setState({ letterShortcuts: letters })}
      />
      <Button icon="keyboard" className="w-fit" onClick={() => requestAction("shortcuts")}>
        {t("pages.keys.title")}
      </Button>
    </Section>
  );
}
