// Merges the draft of this device with the draft of the service: which text is used, and when the user has to choose.
// Pure functions; drafts.ts sends the requests.
export interface ServiceDraft {
  content: string;
  version: number;
}

export interface DraftState {
  /** The text in the field. */
  text: string;
  /** The draft of the service that the text is based on; null: not known yet. */
  base: ServiceDraft | null;
  /** Whether a save is in flight. */
  saving: boolean;
  /** The texts of the latest saves, whether they succeeded or not. */
  savedTexts: readonly string[];
  /** The conflicting draft of another device; nothing is saved until the user chooses. null: no conflict. */
  conflict: ServiceDraft | null;
  /** Texts sent from here as messages and not accepted yet; until then the service's draft is not cleared. */
  sent: readonly string[];
}

export const emptyDraft: DraftState = { text: "", base: null, saving: false, savedTexts: [], conflict: null, sent: [] };

/** Whether the field differs from the service's draft. */
export function isDirty(draft: DraftState): boolean {
  return draft.text !== (draft.base?.content ?? "");
}

/** Whether the text is to be saved now. A field that was cleared by sending waits until the message is settled. */
export function isDue(draft: DraftState): boolean {
  return (
    draft.base !== null &&
    isDirty(draft) &&
    !draft.saving &&
    draft.conflict === null &&
    (draft.text !== "" || draft.sent.length === 0)
  );
}

export function withText(draft: DraftState, text: string): DraftState {
  return { ...draft, text };
}

/** Applies the copy stored on this device when the page loads. */
export function withStoredCopy(draft: DraftState, copy: Pick<DraftState, "text" | "base" | "savedTexts">): DraftState {
  return draft.text === "" && draft.base === null ? { ...draft, ...copy } : draft;
}

/** Merges the service's draft. Unchanged text is replaced by it; changed text is never lost. */
export function mergeServiceDraft(draft: DraftState, kept: ServiceDraft): DraftState {
  if (draft.base !== null && kept.version <= draft.base.version) return draft;
  const next = { ...draft, base: kept, conflict: null };
  const untouched = !isDirty(draft) && !draft.saving;
  // The draft was sent from here as a message; it must not be sent again.
  if (draft.sent.includes(kept.content.trim()) && (untouched || draft.text === "")) return { ...next, text: "" };
  if (untouched) return { ...next, text: kept.content };
  const ours =
    kept.content === draft.text ||
    draft.savedTexts.includes(kept.content) ||
    kept.content === (draft.base?.content ?? "");
  if (ours || kept.content === "") return next;
  return draft.text.trim() === "" ? { ...next, text: kept.content } : { ...draft, conflict: kept };
}

/** A save without a response may return later as the service's draft. This many texts are recognized as own saves. */
const recognizedSaves = 8;

export function saveStarted(draft: DraftState): DraftState {
  return { ...draft, saving: true, savedTexts: [...draft.savedTexts.slice(1 - recognizedSaves), draft.text] };
}

/** Records that the service stored the draft. */
export function saveSucceeded(draft: DraftState, kept: ServiceDraft): DraftState {
  const base = draft.base !== null && draft.base.version > kept.version ? draft.base : kept;
  return { ...draft, base, saving: false };
}

/** Records that a save was refused or had no response. current is the service's draft, if it was returned. */
export function saveFailed(draft: DraftState, current: ServiceDraft | null): DraftState {
  const idle = { ...draft, saving: false };
  return current === null ? idle : mergeServiceDraft(idle, current);
}

export function messageSent(draft: DraftState, text: string): DraftState {
  return { ...draft, text: "", conflict: null, sent: [...draft.sent, text] };
}

/** Records that a sent text was accepted or withdrawn. */
export function messageSettled(draft: DraftState, text: string): DraftState {
  const at = draft.sent.indexOf(text);
  return at < 0 ? draft : { ...draft, sent: draft.sent.toSpliced(at, 1) };
}

export function takeTheirs(draft: DraftState): DraftState {
  return draft.conflict === null
    ? draft
    : { ...draft, text: draft.conflict.content, base: draft.conflict, conflict: null };
}

export function keepMine(draft: DraftState): DraftState {
  return draft.conflict === null ? draft : { ...draft, base: draft.conflict, conflict: null };
}
