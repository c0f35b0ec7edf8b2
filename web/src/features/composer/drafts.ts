// The drafts of this page, stored outside of the components, so that none is lost when a page is left. Each is saved on
// the service shortly after typing; until the service has stored it, there is a copy on this device.
import { create } from "zustand";
import { onAttach } from "../../api/attachments";
import { api, body, Refusal, send, type Draft } from "../../api/client";
import { noticeSignOut, useSessionState } from "../../api/session-state";
import { useOutbox, onMessageSettled, type OutboxMessage } from "../../api/outbox";
import { alreadyExists, creationBody, type NewConversation } from "../../api/outbox-message";
import { refetchInAllTabs, conversationQuery, cacheDraft, queryClient, sessionQuery } from "../../api/queries";
import {
  emptyDraft,
  mergeServiceDraft,
  isDirty,
  isDue,
  isEmpty,
  sameContent,
  withChoice,
  withFiles,
  withoutFile,
  withStoredCopy,
  saveSucceeded,
  saveStarted,
  messageSent,
  messageSettled,
  withText,
  saveFailed,
  type Content,
  type DraftState,
  type ServiceDraft,
  type StoredDraft,
} from "./draft";

/** Times in milliseconds. */
const saveDelay = 500;
const copyDelay = 150;
const retryDelay = 4_000;
/** A keepalive request carries at most 64 KiB; this number of characters always fits. */
const keepaliveLimit = 15_000;

interface Drafts {
  byID: Readonly<Record<string, DraftState>>;
  /** The conversations whose draft could not be saved and is only on this device. */
  unsaved: Readonly<Record<string, boolean>>;
}

export const useDrafts = create<Drafts>(() => ({ byID: {}, unsaved: {} }));

/** Conversations that do not exist on the service yet, with how to create them. */
const notCreated = new Map<string, NewConversation>();
const timers = new Map<string, { save?: ReturnType<typeof setTimeout>; copy?: ReturnType<typeof setTimeout> }>();

export const draftOf = (id: string): DraftState => useDrafts.getState().byID[id] ?? emptyDraft;

/** How to create a conversation that does not exist on the service yet; undefined if it exists. */
export const pendingCreation = (id: string): NewConversation | undefined => notCreated.get(id);

/**
 * Opens the draft of a conversation. fresh: the conversation is not on the service yet. Does not wait until the outbox
 * has been read, so that text typed before that is saved too.
 */
export function openDraft(id: string, fresh?: NewConversation): void {
  if (fresh !== undefined) notCreated.set(id, fresh);
  if (useDrafts.getState().byID[id] !== undefined) return;
  void navigator.locks.request(lockName(id), { mode: "shared" }, () => new Promise(() => {}));
  let draft: DraftState = { ...emptyDraft, sent: unaccepted(id) };
  const copy = copyOf(id);
  if (copy !== null) {
    const { temporary: _, ...rest } = copy;
    draft = withStoredCopy(draft, rest);
  }
  if (fresh !== undefined && draft.base === null)
    draft = { ...draft, base: { text: "", files: [], version: noVersion } };
  put(id, draft);
}

/** Returns the sent messages that are not accepted yet. Those of earlier pages are missing until the outbox is read. */
const unaccepted = (id: string): Content[] =>
  useOutbox
    .getState()
    .list.filter(
      (message) => message.conversationID === id && message.branch === undefined && message.state !== "accepted",
    )
    .map(contentOf);

/** The content of an outbox message, as the composer contained it. */
const contentOf = ({ text, attachments = [] }: OutboxMessage): Content => ({
  text: text.trim(),
  files: attachments.map((file) => file.id),
});

/** The version of a draft that the service does not have. */
const noVersion = -1;

export function typeDraft(id: string, text: string): void {
  put(id, withText(draftOf(id), text));
  schedule(id, saveDelay);
}

/** Removes a file from the message that is being written. */
export function detach(id: string, file: string): void {
  put(id, withoutFile(draftOf(id), file));
  schedule(id, saveDelay);
}

export function applyServiceDraft(id: string, received: Draft): void {
  const before = draftOf(id);
  const after = mergeServiceDraft(before, kept(received));
  if (after === before) return;
  put(id, after);
  schedule(id, saveDelay);
}

/** Clears the composer after its text and its files were sent as a message. */
export function clearSentDraft(id: string, message: Content): void {
  put(id, messageSent(draftOf(id), message));
}

/** Returns an unsent text to the field, after the text typed in the meantime. */
export function restoreText(id: string, text: string): void {
  const draft = draftOf(id);
  put(id, withText(draft, draft.text.trim() === "" ? text : `${draft.text}\n\n${text}`));
  schedule(id, saveDelay);
}

export function resolveDraftConflict(id: string, whose: "mine" | "theirs"): void {
  put(id, withChoice(draftOf(id), whose));
  schedule(id, 0);
}

/** Saves an unsaved draft now. */
export function saveDraft(id: string): void {
  schedule(id, 0);
}

function put(id: string, draft: DraftState): void {
  useDrafts.setState(({ byID }) => ({ byID: { ...byID, [id]: draft } }));
  // A draft that the service has is not only on this device, whichever request stored it.
  if (draft.base !== null && !isDirty(draft)) setUnsaved(id, false);
  const timer = timersOf(id);
  timer.copy ??= setTimeout(() => writeCopy(id), copyDelay);
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
  if (!isDue(draft) || useSessionState.getState().lost) return;
  put(id, saveStarted(draft));
  try {
    await createConversation(id);
    const response = await body(
      api.PUT("/conversations/{conversation_id}/draft", {
        params: { path: { conversation_id: id } },
        body: requestBody(draft),
      }),
    );
    put(id, saveSucceeded(draftOf(id), kept(response)));
    setUnsaved(id, false);
    cacheDraft(id, response);
    if (isDue(draftOf(id))) schedule(id, saveDelay);
  } catch (error) {
    handleSaveError(id, error);
  }
}

const kept = ({ content, attachments, version }: Draft): ServiceDraft => ({
  text: content,
  files: attachments,
  version,
});
const requestBody = ({ text, files, base }: DraftState) => ({
  content: text,
  attachments: [...files],
  ...(base === null || base.version === noVersion ? {} : { version: base.version }),
});

/** Creates the conversation if it does not exist on the service yet. */
async function createConversation(id: string): Promise<void> {
  const fresh = notCreated.get(id);
  if (fresh === undefined) return;
  try {
    await api.PUT("/conversations/{conversation_id}", {
      params: { path: { conversation_id: id } },
      body: creationBody(fresh),
    });
  } catch (error) {
    if (!(error instanceof Refusal) || !alreadyExists(error, fresh)) throw error;
  }
  notCreated.delete(id);
  void refetchInAllTabs("conversations");
}

function handleSaveError(id: string, error: unknown): void {
  noticeSignOut(error);
  const refusal = error instanceof Refusal ? error : null;
  const current = refusal?.code === "stale_version" ? (refusal.problem?.current as Draft | undefined) : undefined;
  put(id, saveFailed(draftOf(id), current === undefined ? null : kept(current)));
  if (current !== undefined) return schedule(id, 0);
  const gone = refusal?.code === "conflict" ? unusableFiles(refusal.problem?.current) : [];
  if (gone.length > 0) {
    put(id, gone.reduce(withoutFile, draftOf(id)));
    return schedule(id, 0);
  }
  // A deleted conversation cannot be restored, and its draft was deleted with it.
  if (refusal?.status === 404) localStorage.removeItem(storageKey(id));
  setUnsaved(id, true);
  if (refusal === null || refusal.outcomeUnknown || refusal.status === 429)
    schedule(id, Math.max(refusal?.retryAfter ?? 0, retryDelay * (0.5 + Math.random())));
}

/** The files that a draft cannot have, because they were deleted. */
function unusableFiles(current: unknown): string[] {
  const { files = [] } = (current ?? {}) as { files?: { file_id: string; state: string }[] };
  return files.filter(({ state }) => state !== "ready").map(({ file_id }) => file_id);
}

function setUnsaved(id: string, is: boolean): void {
  if ((useDrafts.getState().unsaved[id] ?? false) !== is)
    useDrafts.setState(({ unsaved }) => ({ unsaved: { ...unsaved, [id]: is } }));
}

// ── The copy on this device ──

const prefix = (): string =>
  `turnstone-draft/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}/`;
const storageKey = (id: string): string => prefix() + id;
/** The name of the lock that every tab with the open draft holds in shared mode. */
const lockName = storageKey;

function writeCopy(id: string): void {
  delete timersOf(id).copy;
  const draft = draftOf(id);
  const { text, files, base, saves } = draft;
  try {
    if (isDirty(draft) && !isEmpty(draft))
      localStorage.setItem(
        storageKey(id),
        JSON.stringify({ text, files, base, saves: saves.slice(-2), temporary: notCreated.get(id)?.temporary }),
      );
    else localStorage.removeItem(storageKey(id));
  } catch {
    // The storage is full or forbidden; the draft is still saved on the service.
  }
}

interface StoredCopy extends StoredDraft {
  /** Whether the conversation is created as a temporary one. */
  temporary?: boolean;
}

function copyOf(id: string): StoredCopy | null {
  try {
    const copy = localStorage.getItem(storageKey(id));
    if (copy === null) return null;
    const { files = [], saves = [], base = null, ...rest } = JSON.parse(copy) as Partial<StoredCopy> & { text: string };
    // Earlier versions of the app stored no files, and another base.
    return { ...rest, files, saves, base: base?.files === undefined ? null : base };
  } catch {
    return null;
  }
}

/** Runs when the page may be closed: writes the copies, and saves drafts with requests that outlive the page. */
function saveBeforeClose(): void {
  for (const [id, draft] of Object.entries(useDrafts.getState().byID)) {
    writeCopy(id);
    if (!isDue(draft) || notCreated.has(id)) continue;
    const path = new URL(`/conversations/${id}/draft`, location.origin);
    const request = new Request(path, {
      method: "PUT",
      keepalive: draft.text.length < keepaliveLimit,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(requestBody(draft)),
    });
    put(id, saveStarted(draft));
    void send(request).then(
      async (response) =>
        put(
          id,
          response.ok
            ? saveSucceeded(draftOf(id), kept((await response.json()) as Draft))
            : saveFailed(draftOf(id), null),
        ),
      () => {
        put(id, saveFailed(draftOf(id), null));
        schedule(id, retryDelay);
      },
    );
  }
}

let sweptOnce = false;

/** Saves the drafts that closed pages could not save, if no tab has them open. */
export async function saveAbandonedDrafts(): Promise<void> {
  if (sweptOnce) return;
  sweptOnce = true;
  const ids = Object.keys(localStorage).flatMap((key) =>
    key.startsWith(prefix()) ? [key.slice(prefix().length)] : [],
  );
  for (const id of ids) {
    if (useDrafts.getState().byID[id] !== undefined) continue;
    await navigator.locks.request(lockName(id), { ifAvailable: true }, async (free) => {
      if (free !== null) await saveAbandonedDraft(id).catch(() => {});
    });
  }
}

async function saveAbandonedDraft(id: string): Promise<void> {
  try {
    const { draft } = await queryClient.fetchQuery(conversationQuery(id));
    openDraft(id);
    applyServiceDraft(id, draft);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) return; // the next page tries again
    openDraft(id, { profile: null, temporary: copyOf(id)?.temporary ?? false });
  }
  schedule(id, 0);
}

/** Adds the messages that earlier pages sent to the drafts that are already open, once the outbox has been read. */
function addSentMessages(): void {
  for (const [id, draft] of Object.entries(useDrafts.getState().byID)) {
    const more = unaccepted(id).filter((message) => !draft.sent.some((one) => sameContent(one, message)));
    if (more.length > 0) put(id, { ...draft, sent: [...draft.sent, ...more] });
  }
}

/** Settles the draft of a message that was accepted or is no longer sent, which may then be cleared, even if no page shows it. */
function settleDraft(message: OutboxMessage, end: "accepted" | "withdrawn" | "dropped", here: boolean): void {
  const { conversationID: id } = message;
  const content = contentOf(message);
  if (message.branch !== undefined) return;
  if (end === "accepted") notCreated.delete(id);
  if (useDrafts.getState().byID[id] === undefined) {
    if (!here) return;
    openDraft(id);
    if (!draftOf(id).sent.some((one) => sameContent(one, content))) put(id, messageSent(draftOf(id), content));
  }
  const settle = () => {
    put(id, messageSettled(draftOf(id), content));
    schedule(id, 0);
  };
  if (end !== "accepted" || !here) return settle();
  void queryClient
    .fetchQuery({ ...conversationQuery(id), staleTime: 0 })
    .then(({ draft }) => applyServiceDraft(id, draft))
    .catch(() => {})
    .finally(settle);
}

/**
 * Starts to save the drafts: when the page is hidden or left, when the network or the session is back, and after a
 * message was sent.
 */
export function startDrafts(): void {
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && saveBeforeClose());
  window.addEventListener("pagehide", saveBeforeClose);
  window.addEventListener("online", () => Object.keys(useDrafts.getState().unsaved).forEach(saveDraft));
  useSessionState.subscribe(
    ({ lost }, before) => before.lost && !lost && Object.keys(useDrafts.getState().byID).forEach(saveDraft),
  );
  useOutbox.subscribe(({ loaded }, before) => loaded && !before.loaded && addSentMessages());
  onMessageSettled(settleDraft);
  onAttach((id, files) => {
    openDraft(id);
    put(id, withFiles(draftOf(id), files));
    schedule(id, saveDelay);
    // An upload may be continued on another page than that of its conversation.
    if (draftOf(id).base === null) void saveAbandonedDraft(id).catch(() => {});
  });
}
