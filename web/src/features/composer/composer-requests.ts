// Requests from the composer to the page around it, and from other components to the composer. A store instead of
// events, so that a request made before its reader is mounted is not lost.
import { create } from "zustand";
import { onTouchScreen } from "../../controls/media";

interface ComposerRequests {
  /** Counts the requests to edit the user's last message; the transcript opens the editor for each. */
  editLast: number;
  /** Counts the requests to focus the composer. */
  focus: number;
}

export const useComposerRequests = create<ComposerRequests>(() => ({ editLast: 0, focus: 0 }));

/** Requests that the transcript opens the editor of the user's last message. */
export const requestEditLast = (): void => useComposerRequests.setState(({ editLast }) => ({ editLast: editLast + 1 }));

/** Requests that the composer takes the focus because the user wants to write, also where that opens a keyboard. */
export const focusToWrite = (): void => useComposerRequests.setState(({ focus }) => ({ focus: focus + 1 }));

/** Requests that the composer takes the focus, except on touch screens, where that would open the keyboard. */
export function focusComposer(): void {
  if (!onTouchScreen()) focusToWrite();
}
