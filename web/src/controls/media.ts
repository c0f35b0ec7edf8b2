// Media queries: whether one matches, whether the device is online, and the queries of touch screens.
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

function subscribeToConnection(notify: () => void): () => void {
  window.addEventListener("online", notify);
  window.addEventListener("offline", notify);
  return () => {
    window.removeEventListener("online", notify);
    window.removeEventListener("offline", notify);
  };
}

export const useOnline = (): boolean => useSyncExternalStore(subscribeToConnection, () => navigator.onLine);

/** Whether the device is operated only by touch. */
export const onTouchScreen = (): boolean => matchMedia(touchScreen).matches;
