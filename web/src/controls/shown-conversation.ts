// Which conversations the tabs of this browser show, so that no tab shows a notification about what the user sees in another one.
import { useEffect } from "react";

const lockOf = (conversation: string): string => `turnstone-shown/${conversation}`;

/** Holds the lock of the conversation that the page shows (null: none) while the page is visible. */
export function useShownConversation(conversation: string | null): void {
  useEffect(() => {
    if (conversation === null) return;
    let release: (() => void) | null = null;
    const update = () => {
      release?.();
      release = null;
      if (document.hidden) return;
      const hidden = new Promise<void>((resolve) => (release = resolve));
      void navigator.locks.request(lockOf(conversation), { mode: "shared" }, () => hidden);
    };
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
      document.removeEventListener("visibilitychange", update);
      release?.();
    };
  }, [conversation]);
}

/** Whether a visible tab shows a conversation. */
export async function isShown(conversation: string): Promise<boolean> {
  const { held } = await navigator.locks.query();
  return held?.some(({ name }) => name === lockOf(conversation)) ?? false;
}
