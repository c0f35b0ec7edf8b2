// Announcements for screen readers; features/conversation/status.tsx renders them into live regions.
import { create } from "zustand";

export const useAnnouncement = create<{ text: string; count: number; urgent: boolean }>(() => ({
  text: "",
  count: 0,
  urgent: false,
}));

/** Announces a short text after the current speech; urgent, for failures: it interrupts the current speech. */
export function announce(text: string, urgent = false): void {
  useAnnouncement.setState(({ count }) => ({ text, count: count + 1, urgent }));
}
