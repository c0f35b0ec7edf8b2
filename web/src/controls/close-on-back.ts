// On phones, Back closes what is in front of the page, as users of apps expect, in place of leaving the page.
import { useRouter } from "@tanstack/react-router";
import { useEffect, useEffectEvent } from "react";

/** Matches phones and tablets. */
export const handheld = "(max-width: 47.99rem), (pointer: coarse)";

/** While it is mounted, Back on a phone or a tablet calls onClose; undefined: what is in front cannot be closed. */
export function useCloseOnBack(onClose: (() => void) | undefined): void {
  const history = useRouter({ warn: false })?.history;
  const close = useEffectEvent(() => onClose?.());
  const closes = onClose !== undefined;
  useEffect(() => {
    if (!closes || history === undefined || !matchMedia(handheld).matches) return;
    let release: (() => void) | null = null;
    let current = true;
    void import("./back").then(
      (back) => current && (release = back.closeOnBack(history, () => close())),
      () => {}, // loading failed: Back leaves the page
    );
    return () => {
      current = false;
      release?.();
    };
  }, [closes, history]);
}
