// Requests from the composer to the page around it, and from other components to the composer. A store instead of
// events, so that a request made before its reader is mounted is not lost.
import { create } from "zustand";

interface ComposerRequests {
  /** Counts the requests to edit the user's last message; the transcript opens the editor for each. */
  editLast: number;
  /** A text to add to the composer of a conversation, after its current text. The composer takes it and sets null. */
  text: { conversationID: string; text: string } | null;
  /** Counts the requests to focus the composer. */
  focus: number;
}

export const useComposerRequests = create<ComposerRequests>(() => ({ editLast: 0, text: null, focus: 0 }));

/** Requests that the transcript opens the editor of the user's last message. */
export const requestEditLast = (): void => useComposerRequests.setState(({ editLast }) => ({ editLast: editLast + 1 }));

/** Requests that the composer of a conversation inserts a text and takes the focus. */
export const insertText = (conversationID: string, text: string): void =>
  useComposerRequests.setState(({ focus }) => ({ text: { conversationID, text }, focus: focus + 1 }));

/** Requests that the composer takes the focus. */
export const focusComposer = (): void => useComposerRequests.setState(({ focus }) => ({ focus: focus + 1 }));
