// What is typed and not sent, between this device and the service: which of the two stands, and when to ask the user.
// Pure; drafts.ts does what is said here.
export interface Kept {
  content: string;
  version: number;
}

export interface DraftState {
  /** What stands in the field. */
  text: string;
  /** What the service has kept, as far as this text is built upon it; null: not known yet. */
  base: Kept | null;
  /** A save is under way. */
  saving: boolean;
  /** The texts that were last put on their way to the service, whatever became of them. */
  tried: readonly string[];
  /** What another device has kept meanwhile, and the user has to decide; nothing is saved until then. */
  theirs: Kept | null;
  /** Texts that were sent from here and are not accepted yet: the service's draft stays as it is until they are. */
  sent: readonly string[];
}

export const emptyDraft: DraftState = { text: "", base: null, saving: false, tried: [], theirs: null, sent: [] };

/** Whether the field holds what the service does not. */
export function isDirty(draft: DraftState): boolean {
  return draft.text !== (draft.base?.content ?? "");
}

/** Whether there is something to save, and it may be saved. A field that was emptied by sending waits for the answer. */
export function isDue(draft: DraftState): boolean {
  return draft.base !== null && isDirty(draft) && !draft.saving && draft.theirs === null && (draft.text !== "" || draft.sent.length === 0);
}

export function typed(draft: DraftState, text: string): DraftState {
  return { ...draft, text };
}

/** What this device had kept for itself, when the page begins. */
export function restored(draft: DraftState, copy: Pick<DraftState, "text" | "base" | "tried">): DraftState {
  return draft.text === "" && draft.base === null ? { ...draft, ...copy } : draft;
}

/** The service says what it has. What was not touched here is replaced by it; what was touched is never lost. */
export function heard(draft: DraftState, kept: Kept): DraftState {
  if (draft.base !== null && kept.version <= draft.base.version) return draft;
  const next = { ...draft, base: kept, theirs: null };
  const untouched = !isDirty(draft) && !draft.saving;
  // It went out as a message from here: it is not to be sent once more.
  if (draft.sent.includes(kept.content.trim()) && (untouched || draft.text === "")) return { ...next, text: "" };
  if (untouched) return { ...next, text: kept.content };
  const ours = kept.content === draft.text || draft.tried.includes(kept.content) || kept.content === (draft.base?.content ?? "");
  if (ours || kept.content === "") return next;
  return draft.text.trim() === "" ? { ...next, text: kept.content } : { ...draft, theirs: kept };
}

/** Saves that were not answered may come back as the service's later; so many of them are known again. */
const remembered = 8;

export function saving(draft: DraftState): DraftState {
  return { ...draft, saving: true, tried: [...draft.tried.slice(1 - remembered), draft.text] };
}

/** The service has kept what was on its way. */
export function saved(draft: DraftState, kept: Kept): DraftState {
  const base = draft.base !== null && draft.base.version > kept.version ? draft.base : kept;
  return { ...draft, base, saving: false };
}

/** The save was refused, or nobody answered; current: what the service says that it has. */
export function unsaved(draft: DraftState, current: Kept | null): DraftState {
  const idle = { ...draft, saving: false };
  return current === null ? idle : heard(idle, current);
}

export function sent(draft: DraftState, text: string): DraftState {
  return { ...draft, text: "", theirs: null, sent: [...draft.sent, text] };
}

/** A text is no longer on its way: it was accepted, or it has been taken back. */
export function settled(draft: DraftState, text: string): DraftState {
  const at = draft.sent.indexOf(text);
  return at < 0 ? draft : { ...draft, sent: draft.sent.toSpliced(at, 1) };
}

export function takeTheirs(draft: DraftState): DraftState {
  return draft.theirs === null ? draft : { ...draft, text: draft.theirs.content, base: draft.theirs, theirs: null };
}

export function keepMine(draft: DraftState): DraftState {
  return draft.theirs === null ? draft : { ...draft, base: draft.theirs, theirs: null };
}
