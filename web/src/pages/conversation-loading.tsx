// Shown in place of a conversation that is not loaded yet: while the device is offline, it says so.
import { Icon } from "../controls/icon";
import { useOnline } from "../controls/media";
import { useLocalization } from "../messages/localization";

export function ConversationLoading() {
  const { t } = useLocalization();
  const online = useOnline();
  if (online) return <p className="m-auto animate-delayed text-sm text-faint">{t("transcript.loading")}</p>;
  return (
    <div role="status" className="m-auto flex max-w-md flex-col items-center px-6 text-center">
      <span className="text-faint">
        <Icon name="globe" />
      </span>
      <p className="mt-2 font-medium">{t("pages.connection.offline")}</p>
      <p className="mt-1 text-sm text-soft">{t("pages.connection.not_loaded")}</p>
    </div>
  );
}
