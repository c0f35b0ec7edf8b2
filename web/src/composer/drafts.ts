// The drafts that this page holds, outside of what is shown, so that leaving a room or the page loses none. Each is kept
// on the service shortly after typing; until that has answered there is a copy on this device.
import { create } from "zustand";
import { api, body, Refusal, send, type Draft } from "../api/client";
import { notice, useAccess } from "../api/access";
import { useLetters, whenLetterEnds, type Profile } from "../api/outbox";
import { changed, conversationQuery, noteDraft, queryClient, sessionQuery } from "../api/queries";
import { emptyDraft, heard, isDirty, isDue, keepMine, restored, saved, saving, sent, settled, takeTheirs, typed, unsaved, type DraftState, type Kept } from "./draft";

/** Times in milliseconds. */
const quiet = 500;
const copyAfter = 150;
const againAfter = 4_000;
/** A request that outlives its page carries 64 KiB at most; characters that fit in any case. */
const outliving = 15_000;

interface Drafts {
  byID: Readonly<Record<string, DraftState>>;
  /** The conversations of which a draft could not be saved; it is on this device alone. */
  unsaved: Readonly<Record<string, boolean>>;
}

export const useDrafts = create<Drafts>(() => ({ byID: {}, unsaved: {} }));

/** Conversations that are still to be made, with their profile: nothing of theirs is on the service. */
const unmade = new Map<string, { profile: Profile | null }>();
const timers = new Map<string, { save?: ReturnType<typeof setTimeout>; copy?: ReturnType<typeof setTimeout> }>();

export const draftOf = (id: string): DraftState => useDrafts.getState().byID[id] ?? emptyDraft;

/** Whether a conversation is still to be made, and how; a message has to make it then. */
export const toBeMade = (id: string): { profile: Profile | null } | undefined => unmade.get(id);

/**
 * Opens the draft of a conversation; fresh: the service does not have the conversation yet. It does not wait for the outbox to be
 * read: what is typed meanwhile has to be saved, too.
 */
export function openDraft(id: string, fresh?: { profile: Profile | null }): void {
  if (fresh !== undefined) unmade.set(id, fresh);
  if (useDrafts.getState().byID[id] !== undefined) return;
  void navigator.locks.request(holding(id), { mode: "shared" }, () => new Promise(() => {}));
  let draft: DraftState = { ...emptyDraft, sent: unaccepted(id) };
  const copy = copyOf(id);
  if (copy !== null) draft = restored(draft, copy);
  if (fresh !== undefined && draft.base === null) draft = { ...draft, base: { content: "", version: nothing } };
  put(id, draft);
}

/** The texts that were sent in a conversation and are not accepted yet, as far as the outbox was read. */
const unaccepted = (id: string): string[] =>
  useLetters
    .getState()
    .list.filter((letter) => letter.conversationID === id && letter.branch === undefined && letter.state !== "accepted")
    .map((letter) => letter.text.trim());

// The outbox was read: texts that an earlier page sent become known to the drafts that are open already.
useLetters.subscribe(({ loaded }, before) => {
  if (!loaded || before.loaded) return;
  for (const [id, draft] of Object.entries(useDrafts.getState().byID)) {
    const more = unaccepted(id).filter((text) => !draft.sent.includes(text));
    if (more.length > 0) put(id, { ...draft, sent: [...draft.sent, ...more] });
  }
});

/** The version of a draft that is not on the service. */
const nothing = -1;

export function typeDraft(id: string, text: string): void {
  put(id, typed(draftOf(id), text));
  schedule(id, quiet);
}

export function hearDraft(id: string, kept: Kept): void {
  const before = draftOf(id);
  const after = heard(before, kept);
  if (after === before) return;
  put(id, after);
  schedule(id, quiet);
}

/** Empties the field: the text is on its way as a message. */
export function draftSent(id: string, text: string): void {
  put(id, sent(draftOf(id), text.trim()));
}

/** Puts a text that was to be sent back, behind what was typed meanwhile. */
export function draftBack(id: string, text: string): void {
  const draft = settled(draftOf(id), text.trim());
  put(id, typed(draft, draft.text.trim() === "" ? text : `${draft.text}\n\n${text}`));
  schedule(id, quiet);
}

export function decideDraft(id: string, whose: "mine" | "theirs"): void {
  const draft = draftOf(id);
  put(id, whose === "mine" ? keepMine(draft) : takeTheirs(draft));
  schedule(id, 0);
}

/** Saves what is not saved yet, at once. */
export function saveDraft(id: string): void {
  schedule(id, 0);
}

function put(id: string, draft: DraftState): void {
  useDrafts.setState(({ byID }) => ({ byID: { ...byID, [id]: draft } }));
  // What the service has is not on this device alone, however it came there.
  if (draft.base !== null && !isDirty(draft)) unable(id, false);
  const timer = timersOf(id);
  timer.copy ??= setTimeout(() => writeCopy(id), copyAfter);
}

function timersOf(id: string): { save?: ReturnType<typeof setTimeout>; copy?: ReturnType<typeof setTimeout> } {
  let timer = timers.get(id);
  if (timer === undefined) timers.set(id, (timer = {}));
  return timer;
}

function schedule(id: string, after: number): void {
  const timer = timersOf(id);
  clearTimeout(timer.save);
  timer.save = setTimeout(() => void save(id), after);
}

async function save(id: string): Promise<void> {
  const draft = draftOf(id);
  if (!isDue(draft) || useAccess.getState().lost) return;
  put(id, saving(draft));
  try {
    await make(id);
    const answer = await body(api.PUT("/conversations/{conversation_id}/draft", { params: { path: { conversation_id: id } }, body: asked(draft) }));
    put(id, saved(draftOf(id), kept(answer)));
    unable(id, false);
    noteDraft(id, answer);
    if (isDue(draftOf(id))) schedule(id, quiet);
  } catch (error) {
    failed(id, error);
  }
}

const kept = (draft: Draft): Kept => ({ content: draft.content, version: draft.version });
const asked = ({ text, base }: DraftState) => ({ content: text, ...(base === null || base.version === nothing ? {} : { version: base.version }) });

/** Makes the conversation if it is still to be made. */
async function make(id: string): Promise<void> {
  const fresh = unmade.get(id);
  if (fresh === undefined) return;
  try {
    await api.PUT("/conversations/{conversation_id}", { params: { path: { conversation_id: id } }, body: { profile: fresh.profile } });
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 409) throw error; // 409: it is there, and has gone its own way
  }
  unmade.delete(id);
  void changed("conversations");
}

function failed(id: string, error: unknown): void {
  notice(error);
  const refusal = error instanceof Refusal ? error : null;
  const current = refusal?.code === "stale_version" ? (refusal.problem?.current as Draft | undefined) : undefined;
  put(id, unsaved(draftOf(id), current === undefined ? null : kept(current)));
  if (current !== undefined) return schedule(id, 0);
  // A conversation that was deleted does not come back, and its draft went with it.
  if (refusal?.status === 404) localStorage.removeItem(place(id));
  unable(id, true);
  if (refusal === null || refusal.unanswered || refusal.status === 429) schedule(id, Math.max(refusal?.retryAfter ?? 0, againAfter * (0.5 + Math.random())));
}

function unable(id: string, is: boolean): void {
  if ((useDrafts.getState().unsaved[id] ?? false) !== is) useDrafts.setState(({ unsaved }) => ({ unsaved: { ...unsaved, [id]: is } }));
}

// ── The copy on this device ──

const prefix = (): string => `turnstone-draft/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}/`;
const place = (id: string): string => prefix() + id;
/** The lock that every tab holds with which a draft is open. */
const holding = place;

function writeCopy(id: string): void {
  delete timersOf(id).copy;
  const draft = draftOf(id);
  const { text, base, tried } = draft;
  try {
    if (isDirty(draft) && text !== "") localStorage.setItem(place(id), JSON.stringify({ text, base, tried: tried.slice(-2) }));
    else localStorage.removeItem(place(id));
  } catch {
    // A full or forbidden store: the service keeps the draft all the same.
  }
}

function copyOf(id: string): Pick<DraftState, "text" | "base" | "tried"> | null {
  try {
    const copy = localStorage.getItem(place(id));
    return copy === null ? null : (JSON.parse(copy) as Pick<DraftState, "text" | "base" | "tried">);
  } catch {
    return null;
  }
}

/** The page may be gone in a moment: the copy is written, and the service is told by a request that outlives the page. */
function leaving(): void {
  for (const [id, draft] of Object.entries(useDrafts.getState().byID)) {
    writeCopy(id);
    if (!isDue(draft) || unmade.has(id)) continue;
    const path = new URL(`/conversations/${id}/draft`, location.origin);
    const request = new Request(path, { method: "PUT", keepalive: draft.text.length < outliving, headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked(draft)) });
    put(id, saving(draft));
    void send(request).then(
      async (answer) => put(id, answer.ok ? saved(draftOf(id), kept((await answer.json()) as Draft)) : unsaved(draftOf(id), null)),
      () => {
        put(id, unsaved(draftOf(id), null));
        schedule(id, againAfter);
      },
    );
  }
}

let swept = false;

/** Saves what pages that are gone could not save, of conversations that nobody has open. */
export async function sweepDrafts(): Promise<void> {
  if (swept) return;
  swept = true;
  const left = Object.keys(localStorage).flatMap((key) => (key.startsWith(prefix()) ? [key.slice(prefix().length)] : []));
  for (const id of left) {
    if (useDrafts.getState().byID[id] !== undefined) continue;
    await navigator.locks.request(holding(id), { ifAvailable: true }, async (free) => {
      if (free !== null) await takeUp(id).catch(() => {});
    });
  }
}

async function takeUp(id: string): Promise<void> {
  try {
    const { draft } = await queryClient.fetchQuery(conversationQuery(id));
    openDraft(id);
    hearDraft(id, kept(draft));
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) return; // later
    openDraft(id, { profile: null });
  }
  schedule(id, 0);
}

document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && leaving());
window.addEventListener("pagehide", leaving);
window.addEventListener("online", () => Object.keys(useDrafts.getState().unsaved).forEach(saveDraft));
useAccess.subscribe(({ lost }, before) => before.lost && !lost && Object.keys(useDrafts.getState().byID).forEach(saveDraft));

// A message was accepted or taken back: the draft that it came from may be cleared, also when nobody looks at its conversation.
whenLetterEnds((letter, end, here) => {
  const { conversationID: id, text } = letter;
  if (letter.branch !== undefined) return;
  if (end === "accepted") unmade.delete(id);
  if (useDrafts.getState().byID[id] === undefined) {
    if (!here) return;
    openDraft(id);
    if (!draftOf(id).sent.includes(text.trim())) put(id, sent(draftOf(id), text.trim()));
  }
  const settle = () => {
    put(id, settled(draftOf(id), text.trim()));
    schedule(id, 0);
  };
  if (end === "taken back" || !here) return settle();
  void queryClient
    .fetchQuery({ ...conversationQuery(id), staleTime: 0 })
    .then(({ draft }) => hearDraft(id, kept(draft)))
    .catch(() => {})
    .finally(settle);
});
