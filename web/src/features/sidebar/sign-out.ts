// Signing out, in every tab. The browser then deletes all data of the app, so unsent messages require a confirmation.
import { create } from "zustand";
import { handleSignOut } from "../../api/session-state";
import { api, Refusal } from "../../api/client";
import { useOutbox } from "../../api/outbox";
import { toast } from "../../controls/toast";
import { sendDeletions } from "./deletion";
import { useLocalization, type Localization } from "../../messages/localization";

/** The number of messages that would be lost; 0: the dialog is closed. */
export const useUnsentCount = create<{ count: number }>(() => ({ count: 0 }));

export async function signOut(t: Localization["t"]): Promise<void> {
  await sendDeletions();
  try {
    await api.POST("/auth/logout");
  } catch (refusal) {
    // 401: the session has already ended.
    if (!(refusal instanceof Refusal) || refusal.status !== 401)
      return void toast(t("pages.sign_out.failed"), { kind: "problem" });
  }
  handleSignOut();
}

export function useSignOut(): () => void {
  const { t } = useLocalization();
  return () => {
    const unsent = useOutbox.getState().list.filter((message) => message.state !== "accepted").length;
    if (unsent > 0) useUnsentCount.setState({ count: unsent });
    else void signOut(t);
  };
}
