// Tells that the connection is lost, once it has been for a second: most losses are over by then, and nobody needs to know.
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { Icon } from "../controls/icon";
import type { LiveTurn } from "../turn/live";
import { useSpeech } from "../words/speech";

/** How long a connection may be lost before it is told, in milliseconds. */
const patience = 1_000;

export function Banner({ live }: { live: LiveTurn | null }) {
  const { say } = useSpeech();
  const offline = useLongLost(useOfflineSince());
  const lost = useLongLost(live?.lostAt ?? null);
  const turning = live !== null && live.view.finished === null;
  const text = offline ? say(turning ? "composer.banner.offline.live" : "composer.banner.offline") : lost && turning ? say("composer.banner.reconnecting") : null;
  return (
    <div role="status" className="pointer-events-none flex justify-center px-4">
      {text !== null && (
        <p className="mb-2 flex items-center gap-2 rounded-md bg-amber-wash px-3 py-1.5 text-sm text-amber">
          <Icon name="globe" size={16} />
          {text}
        </p>
      )}
    </div>
  );
}

/** Whether something has been lost for longer than patience; since: of the page's clock, null when it is not. */
function useLongLost(since: number | null): boolean {
  const [long, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (since === null) return;
    const timer = setTimeout(() => setLong(true), Math.max(0, since + patience - performance.now()));
    return () => clearTimeout(timer);
  }, [since]);
  return long && since !== null;
}

/** Since when there is no network, of the page's clock; null while there is. */
function useOfflineSince(): number | null {
  const online = useSyncExternalStore(
    (tell) => {
      window.addEventListener("online", tell);
      window.addEventListener("offline", tell);
      return () => {
        window.removeEventListener("online", tell);
        window.removeEventListener("offline", tell);
      };
    },
    () => navigator.onLine,
  );
  return useMemo(() => (online ? null : performance.now()), [online]);
}
