// How long something takes, counted in seconds before the reader's eyes, and how long it took.
import { useEffect, useState } from "react";
import { useSpeech, type Speech } from "../words/speech";

/** Seconds since a moment, while it runs; the last count stays when it ends. null without a moment. */
export function useElapsed(since: string | null, running: boolean): number | null {
  const [seconds, setSeconds] = useState<number | null>(null);
  useEffect(() => {
    if (since === null || !running) return;
    const begun = Date.parse(since);
    const count = () => setSeconds(Math.max(0, Math.round((Date.now() - begun) / 1000)));
    count();
    const timer = setInterval(count, 1000);
    return () => clearInterval(timer);
  }, [since, running]);
  return seconds;
}

/** A time in words, as "0.4 s", "12 s", "2 min 5 s". */
export function timeInWords({ say, intl }: Speech, seconds: number): string {
  if (seconds < 60) return say("transcript.seconds", { seconds: intl.formatNumber(seconds, { maximumFractionDigits: seconds < 10 ? 1 : 0 }) });
  const whole = Math.round(seconds);
  return say("transcript.minutes", { minutes: Math.floor(whole / 60), seconds: whole % 60 });
}

/** The seconds that something has taken so far; quiet for who listens. */
export function Elapsed({ since }: { since: string | null }) {
  const speech = useSpeech();
  const seconds = useElapsed(since, true);
  return seconds === null || seconds < 2 ? null : (
    <span aria-hidden="true" className="shrink-0 text-faint tabular-nums">
      {timeInWords(speech, seconds)}
    </span>
  );
}
