// The texts that the user is typing, by artifact. They stay until they are saved or discarded, also while the panel is closed
// and after a reload of the tab.
import { create } from "zustand";

export interface Edit {
  /** The version on which the text is based. */
  base: number;
  text: string;
}

const storageKey = "turnstone-artifact-edits";

/** Parses the stored edits; damaged ones are left out. */
export function parseEdits(kept: string | null): Readonly<Record<string, Edit>> {
  try {
    const found = Object.entries((JSON.parse(kept ?? "{}") ?? {}) as Record<string, Partial<Edit> | null>);
    return Object.fromEntries(
      found.filter(([, edit]) => typeof edit?.base === "number" && typeof edit.text === "string"),
    ) as Record<string, Edit>;
  } catch {
    return {};
  }
}

function storedText(): string | null {
  try {
    return sessionStorage.getItem(storageKey);
  } catch {
    return null; // the storage is not available
  }
}

export const useEdits = create<{ byID: Readonly<Record<string, Edit>> }>(() => ({ byID: parseEdits(storedText()) }));

/** Sets the edit of an artifact; null: it ends. */
export function setEdit(artifact: string, edit: Edit | null): void {
  useEdits.setState(({ byID: { [artifact]: _, ...others } }) => ({
    byID: edit === null ? others : { ...others, [artifact]: edit },
  }));
}

/** Stores the edits in this tab. Called when the page may be left, because a text can be long. */
export function storeEdits(): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(useEdits.getState().byID));
  } catch {
    // The storage is full or not available; the texts last until the page is closed.
  }
}
