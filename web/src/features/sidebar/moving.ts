// Which conversations the user moves into another project.
import { create } from "zustand";
import type { Conversation } from "../../api/client";

/** The conversations that the user moves; empty: none. */
export const useMoving = create<{ conversations: readonly Conversation[] }>(() => ({ conversations: [] }));
