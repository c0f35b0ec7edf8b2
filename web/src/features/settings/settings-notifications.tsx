// The setting of the notifications of this browser. The browser asks for its permission only when the user switches them on.
import { useState } from "react";
import { Check } from "../../controls/form-controls";
import { useDevice } from "../../controls/device";
import { allowNotifications } from "../../controls/notification";
import { useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { Section } from "./section";

export function Notifications() {
  const t = useMessages(settingsMessages);
  const wanted = useDevice(({ notify }) => notify);
  const [permission, setPermission] = useState(() => ("Notification" in window ? Notification.permission : null));
  if (permission === null) return null;
  const change = async (on: boolean) => {
    if (on) setPermission(await allowNotifications());
    else useDevice.setState({ notify: false });
  };
  return (
    <Section id="notifications" title={t("settings.notify")} hint={t("settings.device.hint")}>
      <div className="py-2">
        <Check
          label={t("settings.notify.approvals")}
          hint={t(permission === "denied" ? "settings.notify.blocked" : "settings.notify.hint")}
          checked={wanted && permission === "granted"}
          onChange={(on) => void change(on)}
        />
      </div>
    </Section>
  );
}
