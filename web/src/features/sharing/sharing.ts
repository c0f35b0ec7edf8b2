// The request to share a conversation.
import { create } from "zustand";
import type { Conversation } from "../../api/client";

interface Sharing {
  /** The conversation that the user shares; null: none. */
  conversation: Conversation | null;
  /** The last message that is shared; absent: the last one of the conversation. */
  message?: string | undefined;
}

export const useSharing = create<Sharing>(() => ({ conversation: null }));
