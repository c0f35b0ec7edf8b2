// The drafts of a page, stored outside of the components, so that none is lost when a page is left. Each is saved on
// the service shortly after typing; until the service has stored it, there is a copy on this device.
import { createStore } from "zustand/vanilla";
import type { Draft } from "../../api/client";
import type { OutboxMessage } from "../../api/outbox";
import type { NewConversation } from "../../api/outbox-message";
import { Refusal } from "../../api/problem";
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

export interface DraftsState {
  byID: Readonly<Record<string, DraftState>>;
  /** The conversations whose draft could not be saved and is only on this device. */
  unsaved: Readonly<Record<string, boolean>>;
}

/** The content of a request that saves a draft. */
export interface DraftBody {
  content: string;
  attachments: string[];
  version?: number;
}

/** The dependencies of Drafts; tests replace them. */
export interface DraftsDependencies {
  /** Saves a draft on the service. Throws a Refusal. */
  put(id: string, draft: DraftBody): Promise<Draft>;
  /** Saves a draft while the page may be closed; null: refused. Throws if there is no response. */
  putBeforeClose(id: string, draft: DraftBody, keepalive: boolean): Promise<Draft | null>;
  /** Creates a conversation unless it exists. Throws a Refusal. */
  create(id: string, fresh: NewConversation): Promise<void>;
  /** Loads the draft of a conversation. staleTime: how old it may be, in milliseconds. Throws a Refusal. */
  load(id: string, staleTime?: number): Promise<Draft>;
  /** Reports that the service has stored a draft. */
  saved(id: string, draft: Draft): void;
  /** Reports the error of a request, which may be that of an ended session. */
  noticeSignOut(error: unknown): void;
  /** Whether the session has ended. */
  isSignedOut(): boolean;
  /** The signed-in account; empty: none. */
  account(): string;
  /** The messages that this browser has sent or is sending. Those of earlier pages are missing until they are read. */
  outbox(): readonly OutboxMessage[];
  /** The copies on this device. */
  copies: Storage;
  /** The locks of the browser: every tab with an open draft has one in shared mode. */
  locks: Pick<LockManager, "request">;
}

export class Drafts {
  readonly state = createStore<DraftsState>(() => ({ byID: {}, unsaved: {} }));
  readonly #deps: DraftsDependencies;
  /** Conversations that do not exist on the service yet, with how to create them. */
  readonly #notCreated = new Map<string, NewConversation>();
  readonly #timers = new Map<string, Timers>();
  #swept = false;

  constructor(deps: DraftsDependencies) {
    this.#deps = deps;
  }

  /** How to create a conversation that does not exist on the service yet; undefined if it exists. */
  pendingCreation(id: string): NewConversation | undefined {
    return this.#notCreated.get(id);
  }

  /**
   * Opens the draft of a conversation. fresh: the conversation is not on the service yet. Does not wait until the outbox
   * has been read, so that text typed before that is saved too.
   */
  open(id: string, fresh?: NewConversation): void {
    if (fresh !== undefined) this.#notCreated.set(id, fresh);
    if (this.#isOpen(id)) return;
    void this.#deps.locks.request(this.#key(id), { mode: "shared" }, () => new Promise(() => {}));
    let draft: DraftState = { ...emptyDraft, sent: this.#unaccepted(id) };
    const copy = this.#copyOf(id);
    if (copy !== null) {
      const { temporary: _, ...rest } = copy;
      draft = withStoredCopy(draft, rest);
    }
    if (fresh !== undefined && draft.base === null)
      draft = { ...draft, base: { text: "", files: [], version: noVersion } };
    this.#put(id, draft);
  }

  type(id: string, text: string): void {
    this.#change(id, (draft) => withText(draft, text));
  }

  /** Adds files to the message that is being written. */
  attach(id: string, files: readonly string[]): void {
    this.open(id);
    this.#change(id, (draft) => withFiles(draft, files));
    // An upload may be continued on another page than that of its conversation.
    if (this.#of(id).base === null) void this.#saveAbandonedOne(id).catch(() => {});
  }

  /** Removes a file from the message that is being written. */
  detach(id: string, file: string): void {
    this.#change(id, (draft) => withoutFile(draft, file));
  }

  applyServiceDraft(id: string, received: Draft): void {
    const before = this.#of(id);
    const after = mergeServiceDraft(before, kept(received));
    if (after !== before) this.#change(id, () => after);
  }

  /** Clears the composer after its text and its files were sent as a message. */
  clearSent(id: string, message: Content): void {
    this.#put(id, messageSent(this.#of(id), message));
  }

  /** Returns an unsent text to the field, after the text typed in the meantime. */
  restoreText(id: string, text: string): void {
    this.#change(id, (draft) => withText(draft, draft.text.trim() === "" ? text : `${draft.text}\n\n${text}`));
  }

  resolveConflict(id: string, whose: "mine" | "theirs"): void {
    this.#change(id, (draft) => withChoice(draft, whose), 0);
  }

  /** Empties the composer after its text and its files became something else than a message, unless they have changed. */
  empty(id: string, content: Content): void {
    if (sameContent(this.#of(id), content)) this.#change(id, (draft) => ({ ...draft, text: "", files: [] }), 0);
  }

  /** Creates the conversation of a draft, unless the service has it. Throws a Refusal. */
  async createConversation(id: string): Promise<void> {
    const fresh = this.#notCreated.get(id);
    if (fresh === undefined) return;
    await this.#deps.create(id, fresh);
    this.#notCreated.delete(id);
  }

  /** Returns the conversation if the service has it, otherwise null. A temporary one is created. Throws a Refusal. */
  async conversationOfUpload(id: string): Promise<string | null> {
    if (this.#notCreated.get(id)?.temporary === true) await this.createConversation(id);
    return this.#notCreated.has(id) ? null : id;
  }

  /** Saves an unsaved draft now. */
  save(id: string): void {
    this.#schedule(id, 0);
  }

  #of(id: string): DraftState {
    return this.state.getState().byID[id] ?? emptyDraft;
  }

  #isOpen(id: string): boolean {
    return this.state.getState().byID[id] !== undefined;
  }

  /** Returns the sent messages that are not accepted yet. Those of earlier pages are missing until the outbox is read. */
  #unaccepted(id: string): Content[] {
    return this.#deps
      .outbox()
      .filter(
        (message) => message.conversationID === id && message.branch === undefined && message.state !== "accepted",
      )
      .map(contentOf);
  }

  /** Changes a draft, and saves it after a delay in milliseconds. */
  #change(id: string, change: (draft: DraftState) => DraftState, delay = saveDelay): void {
    this.#put(id, change(this.#of(id)));
    this.#schedule(id, delay);
  }

  #put(id: string, draft: DraftState): void {
    this.state.setState(({ byID }) => ({ byID: { ...byID, [id]: draft } }));
    // A draft that the service has is not only on this device, whichever request stored it.
    if (draft.base !== null && !isDirty(draft)) this.#setUnsaved(id, false);
    this.#timersOf(id).copy ??= setTimeout(() => this.#writeCopy(id), copyDelay);
  }

  #timersOf(id: string): Timers {
    let timers = this.#timers.get(id);
    if (timers === undefined) this.#timers.set(id, (timers = {}));
    return timers;
  }

  #schedule(id: string, delay: number): void {
    const timers = this.#timersOf(id);
    clearTimeout(timers.save);
    timers.save = setTimeout(() => void this.#save(id), delay);
  }

  async #save(id: string): Promise<void> {
    const draft = this.#of(id);
    if (!isDue(draft) || this.#deps.isSignedOut()) return;
    this.#put(id, saveStarted(draft));
    try {
      await this.createConversation(id);
      const response = await this.#deps.put(id, bodyOf(draft));
      this.#put(id, saveSucceeded(this.#of(id), kept(response)));
      this.#setUnsaved(id, false);
      this.#deps.saved(id, response);
      if (isDue(this.#of(id))) this.#schedule(id, saveDelay);
    } catch (error) {
      this.#handleSaveError(id, error);
    }
  }

  #handleSaveError(id: string, error: unknown): void {
    this.#deps.noticeSignOut(error);
    const refusal = error instanceof Refusal ? error : null;
    const current = refusal?.code === "stale_version" ? (refusal.problem?.current as Draft | undefined) : undefined;
    this.#put(id, saveFailed(this.#of(id), current === undefined ? null : kept(current)));
    if (current !== undefined) return this.save(id);
    const gone = refusal?.code === "conflict" ? unusableFiles(refusal.problem?.current) : [];
    if (gone.length > 0) return this.#change(id, (draft) => gone.reduce(withoutFile, draft), 0);
    // A deleted conversation cannot be restored, and its draft was deleted with it.
    if (refusal?.status === 404) this.#deps.copies.removeItem(this.#key(id));
    this.#setUnsaved(id, true);
    if (refusal === null || refusal.outcomeUnknown || refusal.status === 429)
      this.#schedule(id, Math.max(refusal?.retryAfter ?? 0, retryDelay * (0.5 + Math.random())));
  }

  #setUnsaved(id: string, is: boolean): void {
    if ((this.state.getState().unsaved[id] ?? false) !== is)
      this.state.setState(({ unsaved }) => ({ unsaved: { ...unsaved, [id]: is } }));
  }

  // ── The copies on this device ──

  /** The key of a copy, and the name of the lock of its draft. */
  #key(id: string): string {
    return `turnstone-draft/${this.#deps.account()}/${id}`;
  }

  #writeCopy(id: string): void {
    delete this.#timersOf(id).copy;
    const draft = this.#of(id);
    const { text, files, base, saves } = draft;
    const temporary = this.#notCreated.get(id)?.temporary;
    try {
      if (isDirty(draft) && !isEmpty(draft))
        this.#deps.copies.setItem(
          this.#key(id),
          JSON.stringify({ text, files, base, saves: saves.slice(-2), temporary }),
        );
      else this.#deps.copies.removeItem(this.#key(id));
    } catch {
      // The storage is full or forbidden; the draft is still saved on the service.
    }
  }

  #copyOf(id: string): StoredCopy | null {
    try {
      const copy = this.#deps.copies.getItem(this.#key(id));
      if (copy === null) return null;
      const {
        files = [],
        saves = [],
        base = null,
        ...rest
      } = JSON.parse(copy) as Partial<StoredCopy> & {
        text: string;
      };
      // Earlier versions of the app stored no files, and another base.
      return { ...rest, files, saves, base: base?.files === undefined ? null : base };
    } catch {
      return null;
    }
  }

  /** Writes the copies, and saves drafts with requests that outlive the page. Called when the page may be closed. */
  saveBeforeClose(): void {
    for (const [id, draft] of Object.entries(this.state.getState().byID)) {
      this.#writeCopy(id);
      if (!isDue(draft) || this.#notCreated.has(id)) continue;
      this.#put(id, saveStarted(draft));
      void this.#deps.putBeforeClose(id, bodyOf(draft), draft.text.length < keepaliveLimit).then(
        (saved) =>
          this.#put(id, saved === null ? saveFailed(this.#of(id), null) : saveSucceeded(this.#of(id), kept(saved))),
        () => {
          this.#put(id, saveFailed(this.#of(id), null));
          this.#schedule(id, retryDelay);
        },
      );
    }
  }

  /** Saves once the drafts that closed pages could not save, if no tab has them open. */
  async saveAbandoned(): Promise<void> {
    if (this.#swept) return;
    this.#swept = true;
    const { copies, locks } = this.#deps;
    const prefix = this.#key("");
    const keys = Array.from({ length: copies.length }, (_, at) => copies.key(at) ?? "");
    for (const key of keys.filter((one) => one.startsWith(prefix))) {
      const id = key.slice(prefix.length);
      if (this.#isOpen(id)) continue;
      await locks.request(key, { ifAvailable: true }, async (free) => {
        if (free !== null) await this.#saveAbandonedOne(id).catch(() => {});
      });
    }
  }

  async #saveAbandonedOne(id: string): Promise<void> {
    try {
      const draft = await this.#deps.load(id);
      this.open(id);
      this.applyServiceDraft(id, draft);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) return; // the next page tries again
      this.open(id, { profile: null, temporary: this.#copyOf(id)?.temporary ?? false });
    }
    this.save(id);
  }

  // ── The messages in the outbox ──

  /** Adds the messages that earlier pages sent to the drafts that are already open, once the outbox has been read. */
  addSentMessages(): void {
    for (const [id, draft] of Object.entries(this.state.getState().byID)) {
      const more = this.#unaccepted(id).filter((message) => !draft.sent.some((one) => sameContent(one, message)));
      if (more.length > 0) this.#put(id, { ...draft, sent: [...draft.sent, ...more] });
    }
  }

  /** Settles the draft of a message that was accepted or is no longer sent, which may then be cleared, even if no page shows it. */
  settle(message: OutboxMessage, end: "accepted" | "withdrawn" | "dropped", here: boolean): void {
    const { conversationID: id } = message;
    const content = contentOf(message);
    if (message.branch !== undefined) return;
    if (end === "accepted") this.#notCreated.delete(id);
    if (!this.#isOpen(id)) {
      if (!here) return;
      this.open(id);
      if (!this.#of(id).sent.some((one) => sameContent(one, content))) this.clearSent(id, content);
    }
    const settle = () => this.#change(id, (draft) => messageSettled(draft, content), 0);
    if (end !== "accepted" || !here) return settle();
    void this.#deps
      .load(id, 0)
      .then((draft) => this.applyServiceDraft(id, draft))
      .catch(() => {})
      .finally(settle);
  }
}

interface Timers {
  save?: ReturnType<typeof setTimeout>;
  copy?: ReturnType<typeof setTimeout>;
}

interface StoredCopy extends StoredDraft {
  /** Whether the conversation is created as a temporary one. */
  temporary?: boolean;
}

/** The version of a draft that the service does not have. */
const noVersion = -1;

const kept = ({ content, attachments, version }: Draft): ServiceDraft => ({
  text: content,
  files: attachments,
  version,
});
const bodyOf = ({ text, files, base }: DraftState): DraftBody => ({
  content: text,
  attachments: [...files],
  ...(base === null || base.version === noVersion ? {} : { version: base.version }),
});

/** The content of an outbox message, as the composer contained it. */
const contentOf = ({ text, attachments = [] }: OutboxMessage): Content => ({
  text: text.trim(),
  files: attachments.map((file) => file.id),
});

/** The files that a draft cannot have, because they were deleted. */
function unusableFiles(current: unknown): string[] {
  const { files = [] } = (current ?? {}) as { files?: { file_id: string; state: string }[] };
  return files.filter(({ state }) => state !== "ready").map(({ file_id }) => file_id);
}
