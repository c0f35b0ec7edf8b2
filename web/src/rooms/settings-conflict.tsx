// A setting that was changed here and elsewhere: both are shown, and one is taken.
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { useSpeech, type Speech } from "../words/speech";
import { languages, type Word } from "../words/words";
import type { Change, Preference } from "./settings-merge";
import { change, useSettingsStore } from "./settings-store";

const names: Record<Preference, Word> = { language: "rooms.language", theme: "rooms.theme", send_key: "rooms.send_key", busy_action: "rooms.busy", default_profile: "rooms.profile" };

function valueOf(name: Preference, values: Change, say: Speech["say"]): string {
  switch (name) {
    case "language":
      return languages[values.language ?? ""]?.name ?? values.language ?? "";
    case "theme":
      return say(`rooms.theme.${values.theme ?? "system"}`);
    case "send_key":
      return say(values.send_key === "mod_enter" ? "rooms.send_key.with_mod" : "rooms.send_key.alone");
    case "busy_action":
      return say(`rooms.busy.${values.busy_action ?? "queue"}`);
    case "default_profile":
      return say(`rooms.profile.${values.default_profile ?? "auto"}`);
  }
}

export function Conflict() {
  const { say, language } = useSpeech();
  const conflict = useSettingsStore((store) => store.conflict);
  if (conflict === null) return null;
  const close = () => useSettingsStore.setState({ conflict: null });
  return (
    <Dialog title={say("rooms.conflict.title")} description={say("rooms.conflict.why")} onClose={close}>
      <dl className="flex flex-col gap-3 text-sm">
        {conflict.names.map((name) => (
          <div key={name}>
            <dt className="font-medium">{say(names[name])}</dt>
            <dd className="text-soft">{say("rooms.conflict.here", { value: valueOf(name, conflict.change, say) })}</dd>
            <dd className="text-soft">{say("rooms.conflict.there", { value: valueOf(name, conflict.theirs, say) })}</dd>
          </div>
        ))}
      </dl>
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={close}>{say("rooms.conflict.theirs")}</Button>
        <Button
          look="primary"
          onClick={() => {
            close();
            void change(conflict.change, language);
          }}
        >
          {say("rooms.conflict.mine")}
        </Button>
      </div>
    </Dialog>
  );
}
