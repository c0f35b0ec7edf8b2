// The offer of notifications below an answer that takes long.
import { useEffect, useState } from "react";
import { useDevice } from "../../controls/device";
import { Icon } from "../../controls/icon";
import { allowNotifications } from "../../controls/notification";
import { useMessages } from "../../messages/localization";
import { notifyingMessages } from "../../messages/notifying";

/** How long an answer has to take before notifications are offered, in milliseconds. */
const longAnswer = 20_000;

/** since: the start of the answer (RFC 3339). */
export function NotifyOffer({ since }: { since: string }) {
  const t = useMessages(notifyingMessages);
  const [long, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), Date.parse(since) + longAnswer - Date.now());
    return () => clearTimeout(timer);
  }, [since]);
  if (!long) return null;
  const button = "inline-flex min-h-6 items-center gap-1.5 rounded-sm px-1 pointer-coarse:min-h-11";
  const offered = () => useDevice.setState({ offerNotifications: false });
  return (
    <span className="ms-auto inline-flex items-center gap-1">
      <button
        type="button"
        className={`${button} text-accent underline decoration-1 underline-offset-2`}
        onClick={() => void allowNotifications().then(offered, offered)}
      >
        {t("notify.offer")}
      </button>
      <button type="button" className={button} aria-label={t("notify.offer.dismiss")} onClick={offered}>
        <Icon name="close" size={14} />
      </button>
    </span>
  );
}
