// The request to share a conversation.
import { create } from "zustand";
import type { Conversation } from "../../api/client";

/** The conversation that the user shares; null: none. */
export const useSharing = create<{ conversation: Conversation | null }>(() => ({ conversation: null }));
