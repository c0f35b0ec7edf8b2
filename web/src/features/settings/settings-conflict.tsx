// The conflict of a setting that was changed on this and on another device: shows both values and lets the user choose.
import type { Change, Preference } from "../../api/settings-merge";
import { change, useSettingsStore } from "../../api/settings-store";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages, type SettingsMessageKey } from "../../messages/settings";
import { languages, type MessageKey, type Translate } from "../../messages/catalog";

const names: Record<Preference, MessageKey | SettingsMessageKey> = {
  language: "pages.language",
  theme: "pages.theme",
  send_key: "pages.send_key",
  busy_action: "pages.busy",
  steering_delivery: "pages.steering_delivery",
  default_profile: "pages.profile",
};

function valueOf(name: Preference, values: Change, t: Translate<SettingsMessageKey>): string {
  switch (name) {
    case "language":
      return languages[values.language ?? ""]?.name ?? values.language ?? "";
    case "theme":
      return t(`pages.theme.${values.theme ?? "system"}`);
    case "send_key":
      return t(values.send_key === "mod_enter" ? "pages.send_key.with_mod" : "pages.send_key.alone");
    case "busy_action":
      return t(`pages.busy.${values.busy_action ?? "queue"}`);
    case "steering_delivery":
      return t(`pages.steering_delivery.${values.steering_delivery ?? "next_step"}`);
    case "default_profile":
      return t(`pages.profile.${values.default_profile ?? "auto"}`);
  }
}

export function SettingsConflictDialog() {
  const t = useMessages(settingsMessages);
  const { language } = useLocalization();
  const conflict = useSettingsStore((store) => store.conflict);
  if (conflict === null) return null;
  const close = () => useSettingsStore.setState({ conflict: null });
  return (
    <Dialog title={t("settings.conflict.title")} description={t("settings.conflict.description")} onClose={close}>
      <dl className="flex flex-col gap-3 text-sm">
        {conflict.names.map((name) => (
          <div key={name}>
            <dt className="font-medium">{t(names[name])}</dt>
            <dd className="text-soft">{t("settings.conflict.here", { value: valueOf(name, conflict.change, t) })}</dd>
            <dd className="text-soft">{t("settings.conflict.there", { value: valueOf(name, conflict.theirs, t) })}</dd>
          </div>
        ))}
      </dl>
      <div className="flex flex-wrap justify-end gap-2">
        <Button autoFocus onClick={close}>
          {t("settings.conflict.use_theirs")}
        </Button>
        <Button
          look="primary"
          onClick={() => {
            close();
            void change(conflict.change, language);
          }}
        >
          {t("settings.conflict.use_mine")}
        </Button>
      </div>
    </Dialog>
  );
}
