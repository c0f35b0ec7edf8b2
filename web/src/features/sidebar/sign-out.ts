// Signing out, in every tab. The browser then deletes all data of the app, so unsent messages and unsaved
// texts of artifacts require a confirmation.
import { create } from "zustand";
import { handleSignOut } from "../../api/session-state";
import { api, Refusal } from "../../api/client";
import { useOutbox } from "../../api/outbox";
import { toast } from "../../controls/toast";
import { loadUnsaved } from "../artifacts";
import { sendDeletions } from "./deletion";
import { useLocalization, type Localization } from "../../messages/localization";

/** The numbers of messages and of texts of artifacts that would be lost; without any, the dialog is closed. */
export interface Unsent {
  messages: number;
  artifacts: number;
}

const nothing: Unsent = { messages: 0, artifacts: 0 };
export const useUnsent = create<Unsent>(() => nothing);
export const isUnsent = ({ messages, artifacts }: Unsent): boolean => messages + artifacts > 0;
export const closeSignOut = (): void => useUnsent.setState(nothing);

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
  return () => void ask();

  async function ask(): Promise<void> {
    const messages = useOutbox.getState().list.filter((message) => message.state !== "accepted").length;
    const unsent = { messages, artifacts: (await (await loadUnsaved())?.countUnsavedArtifacts()) ?? 0 };
    if (isUnsent(unsent)) useUnsent.setState(unsent);
    else await signOut(t);
  }
}
