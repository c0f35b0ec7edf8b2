// Elapsed time: a counter of seconds while something runs, and durations as text.
import { useEffect, useState } from "react";
import { useLocalization, type Localization } from "../messages/localization";

/**
 * Returns the seconds since a time (RFC 3339), updated every second while running; afterwards the last value stays.
 * null: nothing was counted yet.
 */
export function useElapsed(since: string | null, running: boolean): number | null {
  const [seconds, setSeconds] = useState<number | null>(null);
  useEffect(() => {
    if (since === null || !running) return;
    const startedAt = Date.parse(since);
    const count = () => setSeconds(Math.max(0, Math.round((Date.now() - startedAt) / 1000)));
    count();
    const timer = setInterval(count, 1000);
    return () => clearInterval(timer);
  }, [since, running]);
  return seconds;
}

/** Returns a duration as text, for example "0.4 s", "12 s" or "2 min 5 s". */
export function formatDuration({ t, intl }: Localization, seconds: number): string {
  if (seconds < 60)
    return t("transcript.seconds", {
      seconds: intl.formatNumber(seconds, { maximumFractionDigits: seconds < 10 ? 1 : 0 }),
    });
  const whole = Math.round(seconds);
  return t("transcript.minutes", { minutes: Math.floor(whole / 60), seconds: whole % 60 });
}

/** Shows the seconds since a time, from 2 seconds on; hidden from screen readers. */
export function Elapsed({ since }: { since: string | null }) {
  const localization = useLocalization();
  const seconds = useElapsed(since, true);
  return seconds === null || seconds < 2 ? null : (
    <span aria-hidden="true" className="shrink-0 text-faint tabular-nums">
      {formatDuration(localization, seconds)}
    </span>
  );
}
