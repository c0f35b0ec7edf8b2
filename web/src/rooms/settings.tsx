// The settings: of the account, and of this device. What is changed is stored at once; there is no button to forget.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { sessionQuery, settingsQuery } from "../api/queries";
import { Button } from "../controls/button";
import { Check, Choice, Select } from "../controls/choice";
import { useDevice } from "../controls/device";
import { Icon } from "../controls/icon";
import { act, onMac, shown } from "../keys/keys";
import { useSpeech } from "../words/speech";
import { languages } from "../words/words";
import { About } from "./settings-about";
import { Section } from "./section";
import { Conflict } from "./settings-conflict";
import { Devices } from "./settings-devices";
import { ChangePassword } from "./settings-password";
import type { Change } from "./settings-merge";
import { change, useSettingsStore } from "./settings-store";
import { useSignOut } from "./sign-out";
import { RoomTitle } from "./title";

export function SettingsRoom() {
  const { say } = useSpeech();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className="min-h-0 grow overflow-y-auto">
      <RoomTitle name={say("rooms.settings.title")} />
      <div className="mx-auto flex w-full max-w-160 flex-col gap-12 px-5 pt-4 pb-24">
        <h1 ref={heading} tabIndex={-1} className="text-xl font-semibold outline-none">
          {say("rooms.settings.title")}
        </h1>
        <Profile />
        <Preferences />
        <ThisDevice />
        <Section title={say("rooms.password.change")}>
          <ChangePassword />
        </Section>
        <Section title={say("rooms.devices.title")} hint={say("rooms.devices.hint")}>
          <Devices />
        </Section>
        <About />
      </div>
      <Conflict />
    </div>
  );
}

function Profile() {
  const { say } = useSpeech();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const signOut = useSignOut();
  return (
    <Section title={say("rooms.settings.account")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-soft">{say("rooms.name")}</dt>
        <dd className="wrap-anywhere">
          <bdi>{session?.account.display_name}</bdi>
        </dd>
        <dt className="text-soft">{say("rooms.email")}</dt>
        <dd className="wrap-anywhere">
          <bdi>{session?.account.email || say("rooms.settings.no_email")}</bdi>
        </dd>
      </dl>
      <Button icon="leave" className="w-fit" onClick={signOut}>
        {say("rooms.sign_out")}
      </Button>
    </Section>
  );
}

function Preferences() {
  const { say, language } = useSpeech();
  const { data: settings, isError, refetch } = useQuery(settingsQuery);
  if (isError && settings === undefined) {
    return (
      <Section title={say("rooms.settings.look")} hint={say("rooms.settings.unread")}>
        <Button icon="retry" className="w-fit" onClick={() => void refetch()}>
          {say("rooms.again")}
        </Button>
      </Section>
    );
  }
  if (settings === undefined) return <p role="status" className="text-sm text-soft">{say("rooms.list.loading")}</p>;
  const put = (wanted: Change) => void change(wanted, language);
  const enter = (keys: string) => shown(keys, onMac);
  return (
    <>
      <Section title={say("rooms.settings.look")}>
        <Choice label={say("rooms.theme")} value={settings.theme} onChange={(theme) => put({ theme })} options={(["system", "light", "dark"] as const).map((value) => ({ value, label: say(`rooms.theme.${value}`) }))} />
        <Select label={say("rooms.language")} value={language} onChange={(wanted) => put({ language: wanted })} options={Object.entries(languages).map(([value, { name }]) => ({ value, label: name, lang: value }))} />
      </Section>
      <Section title={say("rooms.settings.writing")}>
        <Choice
          label={say("rooms.send_key")}
          value={settings.send_key}
          onChange={(send_key) => put({ send_key })}
          options={[
            { value: "enter", label: enter("Enter"), hint: say("rooms.send_key.enter", { keys: enter("Shift+Enter") }) },
            { value: "mod_enter", label: enter("Mod+Enter"), hint: say("rooms.send_key.mod_enter", { keys: enter("Enter") }) },
          ]}
        />
        <Choice label={say("rooms.busy")} value={settings.busy_action} onChange={(busy_action) => put({ busy_action })} options={(["queue", "steer", "interrupt"] as const).map((value) => ({ value, label: say(`rooms.busy.${value}`), hint: say(`rooms.busy.${value}_hint`) }))} />
        <Choice
          label={say("rooms.profile")}
          value={settings.default_profile}
          onChange={(default_profile) => put({ default_profile })}
          options={(["auto", "balanced", "deep_reasoning", "coding"] as const).map((value) => ({ value, label: say(`rooms.profile.${value}`), hint: say(`rooms.profile.${value}_hint`) }))}
        />
      </Section>
      <Stored />
    </>
  );
}

/** Whether what was changed is stored: said, and shown where it went wrong. */
function Stored() {
  const { say } = useSpeech();
  const { refusal, stored } = useSettingsStore();
  return (
    <div role="status" className={refusal === null ? "sr-only" : ""}>
      {refusal !== null ? (
        <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
          <Icon name="warning" size={16} />
          {say(refusal.unanswered ? "rooms.settings.unanswered" : "rooms.settings.refused")}
        </p>
      ) : (
        stored > 0 && say("rooms.settings.stored")
      )}
    </div>
  );
}

function ThisDevice() {
  const { say } = useSpeech();
  const device = useDevice();
  return (
    <Section title={say("rooms.device.title")} hint={say("rooms.device.hint")}>
      <Choice label={say("rooms.announce")} value={device.announce} onChange={(announce) => useDevice.setState({ announce })} options={(["end", "sentences", "off"] as const).map((value) => ({ value, label: say(`rooms.announce.${value}`) }))} />
      <Check label={say("rooms.keys.letters")} hint={say("rooms.keys.letters_why")} checked={device.letters} onChange={(letters) => useDevice.setState({ letters })} />
      <Button icon="keyboard" className="w-fit" onClick={() => act("shortcuts")}>
        {say("rooms.keys.title")}
      </Button>
    </Section>
  );
}
