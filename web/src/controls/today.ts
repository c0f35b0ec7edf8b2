// The current time with the precision of a day: it changes when the day changes.
import { useEffect, useState } from "react";

/** Milliseconds between checks of the clock. It is polled because a computer may wake up from sleep on another day. */
const checkInterval = 30_000;

/** Returns a function that numbers the days of a time zone: one more at each midnight, however long the day. */
export function dayIn(zone: string): (time: Date) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    calendar: "gregory",
    numberingSystem: "latn",
    year: "numeric",
    month: "numeric",
    day: "numeric",
  });
  return (time) => {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(parts["year"]!, parts["month"]! - 1, parts["day"]) / 86_400_000;
  };
}

let known: string | undefined;

/** Returns the time zone of the reader. */
export const zone = (): string => (known ??= Intl.DateTimeFormat().resolvedOptions().timeZone);

export function useToday(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const dayOf = dayIn(zone());
    const timer = setInterval(
      () => setNow((before) => (dayOf(before) === dayOf(new Date()) ? before : new Date())),
      checkInterval,
    );
    return () => clearInterval(timer);
  }, []);
  return now;
}
