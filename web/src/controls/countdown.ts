// A hook that counts down the seconds until a point in time, and their display.
import type { IntlShape } from "@formatjs/intl";
import { useEffect, useState } from "react";

/** Returns the whole seconds until then (a time as of Date.now()); 0 once it has passed. Re-renders while counting. */
export function useSecondsUntil(then: number): number {
  const [now, setNow] = useState(Date.now);
  const left = Math.max(0, Math.ceil((then - now) / 1000));
  useEffect(() => {
    setNow(Date.now());
    if (then <= Date.now()) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    const end = setTimeout(() => clearInterval(timer), then - Date.now() + 1_000);
    return () => {
      clearInterval(timer);
      clearTimeout(end);
    };
  }, [then]);
  return left;
}

/** Formats seconds as minutes and seconds ("0:42"), so that with tabular digits the width does not change every second. */
export function formatSeconds(seconds: number, intl: Pick<IntlShape, "formatNumber">): string {
  const two = { minimumIntegerDigits: 2 };
  return `${intl.formatNumber(Math.floor(seconds / 60))}:${intl.formatNumber(seconds % 60, two)}`;
}
