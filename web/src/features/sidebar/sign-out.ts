// Signing out, in every tab. Changes of conversations are stored before, in every tab. The browser then deletes all data of the app,
// so unsent messages and unsaved texts of artifacts require a confirmation, and so do changes that could not be stored.
import { create } from "zustand";
import { awaitChanges, changeLocks, hasUnstoredChanges } from "../../api/change-queue";
import { announceSignOut, handleSignOut } from "../../api/session-state";
import { api, Refusal } from "../../api/client";
import { useOutbox } from "../../api/outbox";
import { toast } from "../../controls/toast";
import { loadUnsaved } from "../artifacts";
import { awaitDeletions, deletionLocks, useDeletion } from "./deletion";
import { useLocalization, type Localization } from "../../messages/localization";

/** The longest wait for changes of conversations to be stored before the user is asked, in milliseconds. */
const changesLimit = 10_000;

/** The numbers of messages, texts of artifacts and changes of conversations that would be lost; without any, the dialog is closed. */
export interface Unsent {
  messages: number;
  artifacts: number;
  changes: number;
}

const nothing: Unsent = { messages: 0, artifacts: 0, changes: 0 };
export const useUnsent = create<Unsent>(() => nothing);
export const isUnsent = ({ messages, artifacts, changes }: Unsent): boolean => messages + artifacts + changes > 0;
export const closeSignOut = (): void => useUnsent.setState(nothing);

export async function signOut(t: Localization["t"]): Promise<void> {
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
    const changes = await storeChanges(t);
    const messages = useOutbox.getState().list.filter((message) => message.state !== "accepted").length;
    const unsent = { messages, changes, artifacts: (await (await loadUnsaved())?.countUnsavedArtifacts()) ?? 0 };
    if (isUnsent(unsent)) useUnsent.setState(unsent);
    else await signOut(t);
  }
}

/**
 * Waits until the changes and deletions of conversations are stored, here and in the other tabs, and says so. Returns how many are not
 * stored.
 */
async function storeChanges(t: Localization["t"]): Promise<number> {
  announceSignOut();
  const here = hasUnstoredChanges() || useDeletion.getState().pending.size > 0;
  const locks = [changeLocks, deletionLocks];
  const elsewhere = Promise.all(locks.map((one) => one.ofOtherTabs()));
  const unstored = Promise.all([
    awaitChanges(changesLimit),
    awaitDeletions(changesLimit),
    ...locks.map((one) => one.awaitOtherTabs(changesLimit)),
  ]);
  const waits = here || (await elsewhere).flat().length > 0;
  const closeToast = waits ? toast(t("pages.sign_out.saving"), { stays: changesLimit }) : () => {};
  const counts = await unstored;
  closeToast();
  return counts.reduce((sum, count) => sum + count);
}
