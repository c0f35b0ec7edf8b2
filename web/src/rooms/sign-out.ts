// Signing out, in every tab. The browser forgets everything then, so messages that were not sent yet are asked about.
import { create } from "zustand";
import { leave } from "../api/access";
import { api, Refusal } from "../api/client";
import { useLetters } from "../api/outbox";
import { toast } from "../controls/toast";
import { sendDeletions } from "../sidebar/deletion";
import { useSpeech, type Speech } from "../words/speech";

/** How many messages would be lost; 0 when nothing is asked. */
export const useUnsent = create<{ count: number }>(() => ({ count: 0 }));

export async function signOut(say: Speech["say"]): Promise<void> {
  await sendDeletions();
  try {
    await api.POST("/auth/logout");
  } catch (refusal) {
    // Without a session there is nothing left to end.
    if (!(refusal instanceof Refusal) || refusal.status !== 401) return void toast(say("rooms.sign_out.failed"), { kind: "problem" });
  }
  leave();
}

export function useSignOut(): () => void {
  const { say } = useSpeech();
  return () => {
    const unsent = useLetters.getState().list.filter((letter) => letter.state !== "accepted").length;
    if (unsent > 0) useUnsent.setState({ count: unsent });
    else void signOut(say);
  };
}
