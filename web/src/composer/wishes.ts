// What the composer wishes of the room around it, and what others wish of the composer. A store in place of events, so that
// a wish that came before its reader was there is not lost.
import { create } from "zustand";

interface Wishes {
  /** Counts the wishes to edit the last message of the user; the transcript opens its editor at each. */
  editLast: number;
  /** A text that is to stand in the composer of a conversation, behind what is there already. */
  text: { conversationID: string; text: string } | null; // taken out by the composer that takes it in
  /** Counts the wishes to put the focus into the composer. */
  focus: number;
}

export const useWishes = create<Wishes>(() => ({ editLast: 0, text: null, focus: 0 }));

/** Asks the transcript to edit the last message of the user. */
export const wishEditLast = (): void => useWishes.setState(({ editLast }) => ({ editLast: editLast + 1 }));

/** Asks the composer of a conversation to take a text in, and puts the focus there. */
export const wishText = (conversationID: string, text: string): void => useWishes.setState(({ focus }) => ({ text: { conversationID, text }, focus: focus + 1 }));

/** Asks the composer to take the focus. */
export const wishFocus = (): void => useWishes.setState(({ focus }) => ({ focus: focus + 1 }));
