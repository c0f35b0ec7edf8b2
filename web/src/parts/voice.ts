// What is told to who listens instead of looking; transcript/status.tsx speaks it.
import { create } from "zustand";

export const useVoice = create<{ text: string; count: number; urgent: boolean }>(() => ({ text: "", count: 0, urgent: false }));

/** Says a short text once the voice is free; urgent: at once, because something went wrong. */
export function announce(text: string, urgent = false): void {
  useVoice.setState(({ count }) => ({ text, count: count + 1, urgent }));
}
