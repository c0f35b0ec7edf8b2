// What is told politely to who listens instead of looking; transcript/status.tsx speaks it.
import { create } from "zustand";

export const useVoice = create<{ text: string; count: number }>(() => ({ text: "", count: 0 }));

/** Says a short text once the voice is free. */
export function announce(text: string): void {
  useVoice.setState(({ count }) => ({ text, count: count + 1 }));
}
