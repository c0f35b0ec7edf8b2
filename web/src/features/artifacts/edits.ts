// The texts that the user is typing, by artifact. They stay until they are saved or discarded, also while the panel is closed
// and after a reload of the tab. They are stored shortly after typing, and when the page is hidden or left: a browser may end a
// hidden page without notice.
import { create } from "zustand";

export interface Edit {
  /** Distinguishes the edit from others of the same artifact. */
  id: string;
  /** The version on which the text is based. */
  base: number;
  text: string;
}

/** It is also in index.ts, which does not import this module. */
const storageKey = "turnstone-artifact-edits";
/** In milliseconds. A text can be long, so it is not stored at every key. */
const storeDelay = 1_000;

/** Parses the stored edits; damaged ones are left out. */
export function parseEdits(kept: string | null): Readonly<Record<string, Edit>> {
  try {
    const found = Object.entries((JSON.parse(kept ?? "{}") ?? {}) as Record<string, Partial<Edit> | null>);
    return Object.fromEntries(
      found.flatMap(([artifact, edit]) =>
        typeof edit?.base === "number" && typeof edit.text === "string"
          ? [[artifact, { id: String(edit.id), base: edit.base, text: edit.text }]]
          : [],
      ),
    );
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

let timer: ReturnType<typeof setTimeout> | undefined;

/** Sets the edit of an artifact; null: it ends. */
function setEdit(artifact: string, edit: Edit | null): void {
  timer ??= setTimeout(storeEdits, storeDelay);
  useEdits.setState(({ byID: { [artifact]: _, ...others } }) => ({
    byID: edit === null ? others : { ...others, [artifact]: edit },
  }));
}

/** Begins to edit the text of a version. */
export function beginEdit(artifact: string, base: number, text: string): void {
  restoreEdit(artifact, { id: crypto.randomUUID(), base, text });
}

/** Continues a discarded edit, unless another one was begun since. */
export function restoreEdit(artifact: string, edit: Edit): void {
  if (useEdits.getState().byID[artifact] === undefined) setEdit(artifact, edit);
}

export function typeText(artifact: string, text: string): void {
  const edit = useEdits.getState().byID[artifact];
  if (edit !== undefined) setEdit(artifact, { ...edit, text });
}

export function endEdit(artifact: string): void {
  setEdit(artifact, null);
}

/**
 * Ends an edit whose text was saved as a version. If the user has typed since, the edit continues, based on that version. Another
 * edit, which was begun since, does not change. Returns whether the edit has ended.
 */
export function settleEdit(artifact: string, saved: Edit, version: number): boolean {
  const edit = useEdits.getState().byID[artifact];
  if (edit?.id !== saved.id) return false;
  const ends = edit.text === saved.text;
  setEdit(artifact, ends ? null : { ...edit, base: version });
  return ends;
}

/**
 * Returns the version that a save replaces: the newest one whose difference from the base the user sees; null: none is loaded yet.
 * diff is the latest difference that was loaded, failed whether that of the newest version could not be loaded.
 */
export function replacedVersion(
  base: number,
  newest: number,
  diff: { from: number; to: number } | undefined,
  failed: boolean,
): number | null {
  if (newest <= base) return base;
  if (diff?.from === base) return diff.to;
  return failed ? newest : null;
}

/** Stores the edits in this tab. */
export function storeEdits(): void {
  clearTimeout(timer);
  timer = undefined;
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(useEdits.getState().byID));
  } catch {
    // The storage is full or not available; the texts last until the page is closed.
  }
}

/** Ends all edits, so that none is stored again after a sign-out has deleted them. */
export function discardEdits(): void {
  useEdits.setState({ byID: {} });
  storeEdits();
}

/** Returns the artifacts whose text differs from that of its version; contentOf returns undefined if it is not known. */
export function unsavedArtifacts(contentOf: (artifact: string, version: number) => string | undefined): Set<string> {
  const edits = Object.entries(useEdits.getState().byID);
  return new Set(edits.flatMap(([artifact, { base, text }]) => (text === contentOf(artifact, base) ? [] : [artifact])));
}
