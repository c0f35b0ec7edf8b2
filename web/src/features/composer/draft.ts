// Merges the draft of this device with the draft of the service: which text and files are used, and when the user has to
// choose. Files that were added or removed on two devices are merged; only texts can conflict. Pure functions; drafts.ts
// sends the requests.
import { maxDraftFiles } from "../../generated/limits";

/** A text with files, by their identifiers, in the order in which they are sent. */
export interface Content {
  text: string;
  files: readonly string[];
}

export interface ServiceDraft extends Content {
  version: number;
}

export interface DraftState extends Content {
  /** The draft of the service that the text and the files are based on; null: not known yet. */
  base: ServiceDraft | null;
  /** Whether a save is in flight. */
  saving: boolean;
  /** The contents of the latest saves that may still become the service's draft: all since the last response. */
  saves: readonly Content[];
  /** The conflicting draft of another device; nothing is saved until the user chooses. null: no conflict. */
  conflict: ServiceDraft | null;
  /** Messages sent from here and not accepted yet; until then the service's draft is not cleared. */
  sent: readonly Content[];
}

export const emptyDraft: DraftState = {
  text: "",
  files: [],
  base: null,
  saving: false,
  saves: [],
  conflict: null,
  sent: [],
};

const sameFiles = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((file, at) => file === b[at]);
export const sameContent = (a: Content, b: Content): boolean => a.text === b.text && sameFiles(a.files, b.files);
const union = (a: readonly string[], b: readonly string[]): readonly string[] =>
  [...new Set([...a, ...b])].slice(0, maxDraftFiles);
const without = (a: readonly string[], b: readonly string[]): readonly string[] => a.filter((one) => !b.includes(one));

export const isEmpty = ({ text, files }: Content): boolean => text === "" && files.length === 0;

/** Whether the text or the files differ from the service's draft. */
export function isDirty(draft: DraftState): boolean {
  return !sameContent(draft, draft.base ?? emptyDraft);
}

/** Whether the draft is to be saved now. A composer that was cleared by sending waits until the message is settled. */
export function isDue(draft: DraftState): boolean {
  return (
    draft.base !== null &&
    isDirty(draft) &&
    !draft.saving &&
    draft.conflict === null &&
    (!isEmpty(draft) || draft.sent.length === 0)
  );
}

export function withText(draft: DraftState, text: string): DraftState {
  return { ...draft, text };
}

export function withFiles(draft: DraftState, added: readonly string[]): DraftState {
  return { ...draft, files: union(draft.files, added) };
}

export function withoutFile(draft: DraftState, file: string): DraftState {
  return { ...draft, files: without(draft.files, [file]) };
}

/** What a device stores of a draft while the service does not have it. */
export type StoredDraft = Pick<DraftState, "text" | "files" | "base" | "saves">;

/** Applies the copy stored on this device when the page loads. */
export function withStoredCopy(draft: DraftState, copy: StoredDraft): DraftState {
  return isEmpty(draft) && draft.base === null ? { ...draft, ...copy } : draft;
}

/** Merges the service's draft. What is unchanged here is replaced by it; what is changed here is never lost. */
export function mergeServiceDraft(draft: DraftState, kept: ServiceDraft): DraftState {
  const { base } = draft;
  if (base !== null && kept.version <= base.version) return draft;
  // It was saved from here, and the response was lost or has not arrived yet.
  if (draft.saves.some((save) => sameContent(save, kept))) return { ...draft, base: kept, conflict: null };
  const files = mergeFiles(draft, kept);
  const next = { ...draft, files, base: kept, conflict: null };
  const untouched = draft.text === (base?.text ?? "") && draft.text === inFlight(draft).text;
  // The text was sent from here as a message; it must not be sent again.
  if (sentAs(draft, kept) !== undefined && (untouched || draft.text === "")) return { ...next, text: "" };
  if (untouched) return { ...next, text: kept.text };
  const ours =
    kept.text === draft.text || draft.saves.some(({ text }) => text === kept.text) || kept.text === (base?.text ?? "");
  if (ours || kept.text === "") return next;
  return draft.text.trim() === "" ? { ...next, text: kept.text } : { ...draft, conflict: kept };
}

/** The content of the save in flight; without one, of the draft. */
const inFlight = (draft: DraftState): Content => (draft.saving ? draft.saves.at(-1)! : draft);

const sentAs = ({ sent }: DraftState, kept: Content): Content | undefined =>
  sent.find(({ text }) => text === kept.text.trim());

/** Merges the files: those of the service's draft, with what was added and removed here since the draft it is based on. */
function mergeFiles(draft: DraftState, kept: ServiceDraft): readonly string[] {
  const { base, files } = draft;
  const before = base?.files ?? [];
  const theirs = without(kept.files, sentAs(draft, kept)?.files ?? []);
  if (sameFiles(files, before) && sameFiles(inFlight(draft).files, files)) return theirs;
  return union(without(theirs, without(before, files)), without(files, before));
}

/** A save without a response may return later as the service's draft. This many are recognized as own saves. */
const recognizedSaves = 8;

export function saveStarted(draft: DraftState): DraftState {
  const { text, files } = draft;
  return { ...draft, saving: true, saves: [...draft.saves.slice(1 - recognizedSaves), { text, files }] };
}

/** Records that the service stored the draft. */
export function saveSucceeded(draft: DraftState, kept: ServiceDraft): DraftState {
  const base = draft.base !== null && draft.base.version > kept.version ? draft.base : kept;
  return { ...draft, base, saving: false, saves: [] };
}

/** Records that a save was refused or had no response. current is the service's draft, if it was returned. */
export function saveFailed(draft: DraftState, current: ServiceDraft | null): DraftState {
  const idle = { ...draft, saving: false };
  return current === null ? idle : mergeServiceDraft(idle, current);
}

export function messageSent(draft: DraftState, message: Content): DraftState {
  return { ...draft, text: "", files: [], conflict: null, sent: [...draft.sent, message] };
}

/** Records that a sent message was accepted or withdrawn. */
export function messageSettled(draft: DraftState, message: Content): DraftState {
  const at = draft.sent.findIndex((one) => sameContent(one, message));
  return at < 0 ? draft : { ...draft, sent: draft.sent.toSpliced(at, 1) };
}

/** Uses the text of the conflicting draft, or keeps the text of this one. Either way, the files are merged. */
export function withChoice(draft: DraftState, whose: "mine" | "theirs"): DraftState {
  const { conflict } = draft;
  if (conflict === null) return draft;
  const text = whose === "mine" ? draft.text : conflict.text;
  return { ...draft, text, files: mergeFiles(draft, conflict), base: conflict, conflict: null };
}
