// The request to show the branches of a conversation.
import { create } from "zustand";
import type { Conversation } from "../../api/client";

/** The conversation whose branches the user sees; null: none. */
export const useBranching = create<{ conversation: Conversation | null }>(() => ({ conversation: null }));
