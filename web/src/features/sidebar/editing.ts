// Which title is being edited.
import { create } from "zustand";

/** The conversation whose title is being edited, and the position of the editor. */
export const useEditing = create<{ id: string | null; place: "row" | "head" }>(() => ({ id: null, place: "row" }));

export const editTitle = (id: string | null, place: "row" | "head"): void => useEditing.setState({ id, place });
