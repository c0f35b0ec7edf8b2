// The current time with the precision of a day: it changes when the day changes.
import { useEffect, useState } from "react";
import { dayIn } from "../features/sidebar/groups";

/** Milliseconds between checks of the clock. It is polled because a computer may wake up from sleep on another day. */
const checkInterval = 30_000;

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function useToday(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const dayOf = dayIn(zone);
    const timer = setInterval(
      () => setNow((before) => (dayOf(before) === dayOf(new Date()) ? before : new Date())),
      checkInterval,
    );
    return () => clearInterval(timer);
  }, []);
  return now;
}
