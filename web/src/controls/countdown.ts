// Waiting until a point in time, told in seconds.
import { useEffect, useState } from "react";

/** Whole seconds until then (milliseconds of Date.now()), 0 once it is there; counts down by itself. */
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
