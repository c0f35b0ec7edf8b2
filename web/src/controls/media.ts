// Media queries: a hook that re-renders when a query starts or stops to match, and the query for touch screens.
import { useCallback, useSyncExternalStore } from "react";

/** Matches a device that is operated only by touch: a focused text field opens the on-screen keyboard. */
export const touchScreen = "(pointer: coarse) and (hover: none)";

export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (notify: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", notify);
      return () => media.removeEventListener("change", notify);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}
