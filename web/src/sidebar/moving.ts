// The request to move a conversation into another project.
import { create } from "zustand";
import type { Conversation } from "../api/client";

/** The conversation that the user moves; null: none. */
export const useMoving = create<{ conversation: Conversation | null }>(() => ({ conversation: null }));
