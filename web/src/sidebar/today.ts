// The time, as far as a calendar is concerned: changes when the day does.
import { useEffect, useState } from "react";
import { dayIn } from "./groups";

/** Milliseconds between looks at the clock: a computer that slept wakes up on another day. */
const look = 30_000;

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function useToday(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const dayOf = dayIn(zone);
    const timer = setInterval(() => setNow((before) => (dayOf(before) === dayOf(new Date()) ? before : new Date())), look);
    return () => clearInterval(timer);
  }, []);
  return now;
}
