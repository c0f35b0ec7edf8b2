// Shown in place of a conversation that is not loaded yet: while the device is offline, it says so.
import { Icon } from "../../controls/icon";
import { useOnline } from "../../controls/media";
import { useLocalization } from "../../messages/localization";

/** isHeading: the page has no other h1. */
export function ConversationLoading({ isHeading = false }: { isHeading?: boolean }) {
  const { t } = useLocalization();
  const online = useOnline();
  const Heading = isHeading ? "h1" : "p";
  if (online) return <Heading className="m-auto animate-delayed text-sm text-faint">{t("transcript.loading")}</Heading>;
  return (
    <div role="status" className="m-auto flex max-w-md flex-col items-center px-6 text-center">
      <span className="text-faint">
        <Icon name="globe" />
      </span>
      <Heading className="mt-2 font-medium">{t("pages.connection.offline")}</Heading>
      <p className="mt-1 text-sm text-soft">{t("pages.connection.not_loaded")}</p>
    </div>
  );
}
