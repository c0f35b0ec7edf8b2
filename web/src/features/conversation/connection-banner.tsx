// The banner that reports a connection lost for more than a second. Most losses are shorter and are not reported.
import { useEffect, useMemo, useState } from "react";
import { Icon } from "../../controls/icon";
import { useOnline } from "../../controls/media";
import type { LiveTurn } from "../../turn/live";
import { useLocalization } from "../../messages/localization";

/** Milliseconds for which a connection must be lost before the banner appears. */
const bannerDelay = 1_000;

export function ConnectionBanner({ live }: { live: LiveTurn | null }) {
  const { t } = useLocalization();
  const offline = useLostLongerThanDelay(useOfflineSince());
  const lost = useLostLongerThanDelay(live?.lostAt ?? null);
  const streaming = live !== null && live.view.finished === null;
  const text = offline
    ? t(streaming ? "composer.banner.offline.live" : "composer.banner.offline")
    : lost && streaming
      ? t(live.connection === "unreachable" ? "composer.banner.unreachable" : "composer.banner.reconnecting")
      : null;
  return (
    <div role="status" className="pointer-events-none flex justify-center px-4">
      {text !== null && (
        <p className="mb-2 flex items-center gap-2 rounded-md bg-warning-wash px-3 py-1.5 text-sm text-warning">
          <Icon name="globe" size={16} />
          {text}
        </p>
      )}
    </div>
  );
}

/** Reports whether a loss has lasted longer than bannerDelay. since: a performance.now() time; null: no loss. */
function useLostLongerThanDelay(since: number | null): boolean {
  const [long, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (since === null) return;
    const timer = setTimeout(() => setLong(true), Math.max(0, since + bannerDelay - performance.now()));
    return () => clearTimeout(timer);
  }, [since]);
  return long && since !== null;
}

/** Returns the performance.now() time since which the browser is offline; null while it is online. */
function useOfflineSince(): number | null {
  const online = useOnline();
  return useMemo(() => (online ? null : performance.now()), [online]);
}
