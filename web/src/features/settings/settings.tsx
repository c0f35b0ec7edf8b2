// The settings page: settings of the account and of this device. A change is stored at once; there is no save button.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { settingsQuery } from "../../api/queries";
import type { Change } from "../../api/settings-merge";
import { change, useSettingsStore } from "../../api/settings-store";
import { Button, IconButton } from "../../controls/button";
import { Check, Segmented, Select } from "../../controls/form-controls";
import { useDevice } from "../../controls/device";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { requestAction, onMac, formatKeys } from "../../keys/keys";
import { useSendKey } from "../../keys/send-keys";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { languages } from "../../messages/catalog";
import { About } from "./settings-about";
import { Account } from "./settings-account";
import { Section } from "./section";
import { sectionIDs, sections, type SectionID } from "../../messages/sections";
import { Archive } from "./settings-archive";
import { SettingsConflictDialog } from "./settings-conflict";
import { Data } from "./settings-data";
import { Devices } from "./settings-devices";
import { passkeysSupported } from "../../api/passkeys";
import { deferred } from "../../controls/deferred";
import { Notifications } from "./settings-notifications";
import { ChangePassword } from "./settings-password";
import { Usage } from "./settings-usage";
import { Prompts } from "../prompts";
import { ShareList } from "../sharing";
import { PageTitle } from "../../controls/page-title";

const Passkeys = deferred(() => import("./settings-passkeys").then((m) => m.Passkeys));
const SecurityLog = deferred(() => import("./settings-security-log").then((m) => m.SecurityLog));
const Privacy = deferred(() => import("./settings-privacy").then((m) => m.Privacy));
const AccountInstructions = deferred(() => import("./settings-instructions").then((m) => m.AccountInstructions));
const Identities = deferred(() => import("./settings-identities").then((m) => m.Identities));

/** Scrolls to the section that the URL addresses, once the sections above it have their heights. */
function showAddressedSection(): void {
  // Not the value of an arrow function: new browsers return a promise, which an effect may not return.
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

export function SettingsPage() {
  const t = useMessages(settingsMessages);
  const heading = useRef<HTMLHeadingElement>(null);
  const { isPending } = useQuery(settingsQuery);
  const { scroller, current, show } = useCurrentSection();
  useEffect(() => heading.current?.focus(), []);
  useEffect(showAddressedSection, [isPending]);
  return (
    <div ref={scroller} className="relative min-h-0 grow overflow-y-auto short:overflow-visible">
      <PageTitle name={t("pages.settings.title")} />
      <div className="mx-auto grid w-full max-w-220 gap-x-10 px-5 pb-24 md:grid-cols-[10rem_minmax(0,1fr)]">
        <div className="flex items-center gap-1 pt-3 pb-2 md:col-span-2">
          <BackButton />
          <h1 ref={heading} tabIndex={-1} className="text-xl font-semibold outline-none">
            {t("pages.settings.title")}
          </h1>
        </div>
        <nav
          aria-label={t("settings.sections")}
          className="sticky top-0 z-10 -mx-5 self-start overflow-x-auto bg-paper px-3 py-2 md:top-4 md:mx-0 md:overflow-visible md:px-0"
        >
          <ul className="flex gap-1 md:-ms-3 md:flex-col">
            {sectionIDs.map((id) => (
              <li key={id}>
                <a
                  href={`#${id}`}
                  aria-current={id === current ? "true" : undefined}
                  onClick={(event) => {
                    event.preventDefault(); // Back leads to the page before the settings
                    show(id);
                  }}
                  className="flex min-h-9 items-center rounded-md px-3 text-sm whitespace-nowrap text-soft hover:bg-hover hover:text-ink aria-[current]:bg-hover aria-[current]:font-medium aria-[current]:text-ink pointer-coarse:min-h-11"
                >
                  {t(sections[id])}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div className="flex min-w-0 flex-col gap-9 pt-2">
          <Anchor id="account">
            <Account />
          </Anchor>
          <Preferences />
          <Anchor id="prompts">
            <Section id="saved-prompts" title={t("pages.prompts.title")} hint={t("settings.prompts.hint")}>
              <Prompts project={null} />
            </Section>
          </Anchor>
          <Anchor id="accessibility">
            <Accessibility />
          </Anchor>
          <Anchor id="archive">
            <Section id="archived" title={t("pages.archive.title")} hint={t("settings.archive.hint")}>
              <Archive />
            </Section>
          </Anchor>
          <Anchor id="shares">
            <Section id="shared-links" title={t("pages.shares.title")} hint={t("shares.hint")}>
              <ShareList conversation={null} />
            </Section>
          </Anchor>
          <Anchor id="usage">
            <Section id="tokens" title={t("pages.usage.title")} hint={t("settings.usage.hint")}>
              <Usage />
            </Section>
          </Anchor>
          <Anchor id="privacy">
            <Section id="consents" title={t("pages.privacy.title")}>
              <Privacy />
            </Section>
          </Anchor>
          <Anchor id="data">
            <Section id="your-data" title={t("pages.data.title")}>
              <Data />
            </Section>
          </Anchor>
          <Anchor id="security">
            <Section id="password" title={t("pages.settings.security")}>
              <ChangePassword />
            </Section>
            {passkeysSupported && (
              <Section id="passkeys" title={t("settings.passkeys.title")} hint={t("settings.passkeys.hint")}>
                <Passkeys />
              </Section>
            )}
            <Identities />
            <Section id="devices" title={t("settings.devices.title")} hint={t("settings.devices.hint")}>
              <Devices />
            </Section>
            <Section id="security-log" title={t("settings.security_log.title")} hint={t("settings.security_log.hint")}>
              <SecurityLog />
            </Section>
          </Anchor>
          <Anchor id="about">
            <About />
          </Anchor>
        </div>
      </div>
      <SettingsConflictDialog />
    </div>
  );
}

/** Returns to where the user was before. */
function BackButton() {
  const t = useMessages(settingsMessages);
  const { history } = useRouter();
  const navigate = useNavigate();
  return (
    <IconButton
      icon="chevronLeft"
      mirrored
      label={t("settings.back")}
      className="-ms-2"
      onClick={() => (history.canGoBack() ? history.back() : void navigate({ to: "/" }))}
    />
  );
}

function Anchor({ id, children }: { id: SectionID; children: ReactNode }) {
  return (
    <div id={id} className="flex scroll-mt-16 flex-col gap-9 md:scroll-mt-4">
      {children}
    </div>
  );
}

/** Returns the section that the user chose or scrolled to. */
function useCurrentSection() {
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState<SectionID>(
    () => sectionIDs.find((id) => location.hash === `#${id}`) ?? sectionIDs[0]!,
  );
  // A chosen section near the end may not reach the top, so it stays the current one until the user scrolls. Scroll
  // events do not show who scrolled: the choice does, and so does content above the section that is loaded later.
  const chosen = useRef(location.hash !== "");
  const navigate = useNavigate();
  useEffect(() => {
    const onInput = () => void (chosen.current = false);
    const onScroll = () => {
      if (chosen.current) return;
      const line = (scroller.current?.getBoundingClientRect().top ?? 0) + 120;
      const passed = sectionIDs.filter((id) => (document.getElementById(id)?.getBoundingClientRect().top ?? 0) < line);
      setCurrent(passed.at(-1) ?? sectionIDs[0]!);
    };
    const element = scroller.current;
    const removed = new AbortController();
    const options = { passive: true, signal: removed.signal };
    for (const input of ["wheel", "touchmove", "keydown", "pointerdown"])
      element?.addEventListener(input, onInput, options);
    element?.addEventListener("scroll", onScroll, options);
    return () => removed.abort();
  }, []);
  const show = (id: SectionID) => {
    chosen.current = true;
    setCurrent(id);
    void navigate({ to: "/settings", hash: id, replace: true }).then(showAddressedSection);
  };
  return { scroller, current, show };
}

function Preferences() {
  const t = useMessages(settingsMessages);
  const { language } = useLocalization();
  const { data: stored, isError, refetch } = useQuery(settingsQuery);
  const pending = useSettingsStore((store) => store.pending);
  const sendKey = useSendKey();
  if (stored === undefined) {
    return isError ? (
      <Anchor id="appearance">
        <Section id="theme" title={t("pages.settings.appearance")} hint={t("settings.not_loaded")}>
          <NotLoaded again={refetch}>{t("pages.retry")}</NotLoaded>
        </Section>
      </Anchor>
    ) : (
      <p role="status" className="text-sm text-soft">
        {t("pages.list.loading")}
      </p>
    );
  }
  const settings = { ...stored, ...pending };
  const put = (wanted: Change) => void change(wanted, language);
  const enter = (keys: string) => formatKeys(keys, onMac);
  return (
    <>
      <Anchor id="appearance">
        <Section id="theme" title={t("pages.settings.appearance")}>
          <Segmented
            label={t("pages.theme")}
            value={settings.theme}
            onChange={(theme) => put({ theme })}
            options={(["system", "light", "dark"] as const).map((value) => ({
              value,
              label: t(`pages.theme.${value}`),
            }))}
          />
          <Select
            label={t("pages.language")}
            value={language}
            onChange={(wanted) => put({ language: wanted })}
            options={Object.entries(languages).map(([value, { name }]) => ({ value, label: name, lang: value }))}
          />
        </Section>
      </Anchor>
      <Anchor id="chat">
        <Section id="writing" title={t("pages.settings.writing")}>
          <Segmented
            label={t("pages.send_key")}
            hint={
              sendKey === "button"
                ? t("pages.send_key.touch")
                : t("pages.send_key.line", { keys: enter(settings.send_key === "enter" ? "Shift+Enter" : "Enter") })
            }
            value={settings.send_key}
            onChange={(send_key) => put({ send_key })}
            options={[
              { value: "enter", label: enter("Enter") },
              { value: "mod_enter", label: enter("Mod+Enter") },
            ]}
          />
          <Segmented
            label={t("pages.busy")}
            hint={t(`pages.busy.${settings.busy_action}_hint`)}
            value={settings.busy_action}
            onChange={(busy_action) => put({ busy_action })}
            options={(["queue", "steer", "interrupt"] as const).map((value) => ({
              value,
              label: t(`pages.busy.${value}`),
            }))}
          />
          <Segmented
            label={t("pages.steering_delivery")}
            hint={t(`pages.steering_delivery.${settings.steering_delivery}_hint`)}
            value={settings.steering_delivery}
            onChange={(steering_delivery) => put({ steering_delivery })}
            options={(["next_step", "interrupt"] as const).map((value) => ({
              value,
              label: t(`pages.steering_delivery.${value}`),
            }))}
          />
          <Select
            label={t("pages.profile")}
            hint={t(`pages.profile.${settings.default_profile}_hint`)}
            value={settings.default_profile}
            onChange={(default_profile) => put({ default_profile })}
            options={(["auto", "balanced", "deep_reasoning", "coding"] as const).map((value) => ({
              value,
              label: t(`pages.profile.${value}`),
            }))}
          />
        </Section>
        <SaveStatus />
        <div className="rounded-lg border border-line bg-raised px-4">
          <AccountInstructions />
        </div>
        <Notifications />
      </Anchor>
    </>
  );
}

/** Announces to screen readers that changes are stored, and displays a failure. */
function SaveStatus() {
  const t = useMessages(settingsMessages);
  const { refusal, storedAt: stored } = useSettingsStore();
  return (
    <div role="status" className={refusal === null ? "sr-only" : ""}>
      {refusal !== null ? (
        <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
          <Icon name="warning" size={16} />
          {t(refusal.outcomeUnknown ? "settings.outcome_unknown" : "settings.refused")}
        </p>
      ) : (
        stored > 0 && t("settings.stored")
      )}
    </div>
  );
}

function Accessibility() {
  const t = useMessages(settingsMessages);
  const device = useDevice();
  return (
    <Section id="device" title={t("pages.device.title")} hint={t("settings.device.hint")}>
      <Segmented
        label={t("settings.announce")}
        value={device.announce}
        onChange={(announce) => useDevice.setState({ announce })}
        options={(["end", "sentences", "off"] as const).map((value) => ({
          value,
          label: t(`pages.announce.${value}`),
        }))}
      />
      <div className="py-2">
        <Check
          label={t("pages.keys.letters")}
          hint={t("pages.keys.letters_hint")}
          checked={device.letterShortcuts}
          onChange={(letters) => useDevice.setState({ letterShortcuts: letters })}
        />
      </div>
      <div className="py-3">
        <Button icon="keyboard" onClick={() => requestAction("shortcuts")}>
          {t("pages.keys.title")}
        </Button>
      </div>
    </Section>
  );
}
