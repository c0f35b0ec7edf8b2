// The uploads of a page: sends the files that the user has chosen, and continues while the user visits other pages of the app.
import { createStore } from "zustand/vanilla";
import type { Attachment } from "../../api/attachments";
import { Refusal } from "../../api/problem";
import {
  isOpen,
  problemOfRefusal,
  problemOfUpload,
  reloaded,
  restarted,
  retryOf,
  startable,
  storedUploads,
  type Destination,
  type QueuedUpload,
  type StoredUpload,
  type UploadProblem,
  type ServiceUpload,
} from "./upload-queue";

/** How many times another request may be sending the content of an upload before this one gives up. */
const maxConflicts = 5;

export interface UploadsState {
  list: readonly QueuedUpload[];
  /** How the uploads of the last round have ended, once none is open. */
  ended: Round;
}

/** Uploads between two moments at which none was open. */
interface Round {
  /** Counts the rounds. */
  number: number;
  uploaded: number;
  /** The names of the files whose uploads have stopped. */
  stopped: readonly string[];
}

/** The requests of uploads. They throw a Refusal. */
export interface UploadRequests {
  /** Creates an upload on the service. Not aborted by a cancel: it has to be known, so that it can be cancelled. */
  create(upload: QueuedUpload, file: File): Promise<ServiceUpload>;
  /** Returns an upload; waits: once its state has changed, or after some seconds. */
  get(uploadID: string, waits: boolean, signal: AbortSignal): Promise<ServiceUpload>;
  /** Sends the content of an upload. onSent is called when all of it was sent and the response is pending. */
  send(
    uploadID: string,
    file: File,
    options: { signal: AbortSignal; onProgress: (sent: number) => void; onSent: () => void },
  ): Promise<ServiceUpload>;
  /** Cancels an upload. */
  cancel(uploadID: string): Promise<unknown>;
}

/** The dependencies of Uploads; tests replace them. */
export interface UploadsDependencies {
  requests: UploadRequests;
  /** Adds a file to the message that is being written in a conversation. */
  attach(conversation: string, files: readonly Attachment[]): void;
  /** Returns the conversation that an upload for its next message names; null: none, because the service does not have it. */
  conversationOfUpload(conversation: string): Promise<string | null>;
  /** Reports the conversations whose messages wait for uploads. */
  setUploading(conversations: readonly string[]): void;
  /** Refetches the files of the account. */
  filesChanged(): Promise<unknown>;
  /** Reports the error of a request, which may be that of an ended session. */
  noticeSignOut(error: unknown): void;
  /** Stores the uploads of this tab, so that a reload can continue them. Throws if the storage is full or forbidden. */
  store(uploads: string): void;
  /** Returns what was stored last; null: nothing. Throws if the storage is forbidden. */
  stored(): string | null;
}

/** Thrown if the content has to be sent and the file is not known. */
const interrupted = new Error("the page was closed before the file was sent");

export class Uploads {
  readonly state = createStore<UploadsState>(() => ({ list: [], ended: { number: 0, uploaded: 0, stopped: [] } }));
  readonly #deps: UploadsDependencies;
  /** Files that are ready, and wait for the files that were chosen before them, by upload. */
  readonly #ready = new Map<string, Attachment>();
  /** The signals that end running uploads, by upload. */
  readonly #stops = new Map<string, AbortController>();
  #round: Omit<Round, "number"> = { uploaded: 0, stopped: [] };
  #stored = "[]";
  #resumed = false;

  constructor(deps: UploadsDependencies) {
    this.#deps = deps;
  }

  /** Adds files to the queue. */
  add(files: Iterable<File>, to: Destination): void {
    const added = [...files].map((file): QueuedUpload => {
      const { name, size } = file;
      const [id, key] = [crypto.randomUUID(), crypto.randomUUID()];
      return { id, key, file, name, size, to, uploadID: null, state: "waiting", sent: 0, problem: null };
    });
    this.#update((list) => [...list, ...added]);
    // The service refuses empty files.
    for (const { id, size } of added) if (size === 0) this.#stopped(id, { kind: "empty", detail: "", retryAt: 0 });
    this.#advance();
  }

  /** Removes the uploads for the next message of a conversation that have stopped and cannot continue: it is sent without them. */
  clearStopped(conversation: string): void {
    this.#update((list) =>
      list.filter((one) => one.to.conversation !== conversation || isOpen(one) || retryOf(one) === "continue"),
    );
  }

  /**
   * Continues the uploads that a reload of this page has interrupted, once. If the service has the whole content, it becomes
   * a file; otherwise the user has to choose the file again, because the browser no longer has it.
   */
  resume(): void {
    if (this.#resumed) return;
    this.#resumed = true;
    try {
      const earlier = JSON.parse(this.#deps.stored() ?? "[]") as StoredUpload[];
      if (earlier.length === 0) return;
      this.#update((list) => [...earlier.map(reloaded), ...list]);
    } catch {
      return; // the storage cannot be read
    }
    this.#advance();
  }

  /** Starts an upload again that has stopped. */
  retry(id: string): void {
    const upload = this.#listed(id);
    if (upload?.state !== "stopped") return;
    this.#change(
      id,
      restarted(upload, () => crypto.randomUUID()),
    );
    this.#advance();
  }

  /** Cancels an upload, or removes one that has stopped. */
  cancel(id: string): void {
    const upload = this.#listed(id);
    const stop = this.#stops.get(id);
    if (stop !== undefined) {
      this.#change(id, { state: "cancelling" });
      return stop.abort();
    }
    this.#remove(id);
    if (upload?.to.conversation != null) this.#attachReady(upload.to.conversation);
    if (upload?.uploadID != null) void this.#discard(upload.uploadID);
  }

  #listed(id: string): QueuedUpload | undefined {
    return this.state.getState().list.find((one) => one.id === id);
  }

  /** Changes the list, stores it, and reports which conversations have a message that waits for an upload. */
  #update(change: (list: readonly QueuedUpload[]) => readonly QueuedUpload[]): void {
    const list = change(this.state.getState().list);
    this.state.setState({ list });
    const next = JSON.stringify(storedUploads(list));
    if (next !== this.#stored)
      try {
        this.#stored = next;
        this.#deps.store(next);
      } catch {
        // The storage cannot be written; a reload then ends the uploads.
      }
    this.#deps.setUploading(list.filter(isOpen).flatMap(({ to }) => to.conversation ?? []));
  }

  #change(id: string, changes: Partial<QueuedUpload>): void {
    this.#update((list) => list.map((one) => (one.id === id ? { ...one, ...changes } : one)));
  }

  #remove(id: string): void {
    this.#update((list) => list.filter((one) => one.id !== id));
  }

  /** Notes that an upload has stopped. */
  #stopped(id: string, problem: UploadProblem): void {
    this.#change(id, { state: "stopped", problem });
    const name = this.#listed(id)?.name;
    if (name !== undefined) this.#round = { ...this.#round, stopped: [...this.#round.stopped, name] };
  }

  /** Starts as many waiting uploads as may run, and reports how all have ended if none is left. */
  #advance(): void {
    const { list } = this.state.getState();
    for (const { id } of startable(list)) void this.#run(id);
    if (list.some(isOpen)) return;
    const round = this.#round;
    if (round.uploaded + round.stopped.length === 0) return; // only a cancelled upload has ended
    this.state.setState(({ ended }) => ({ ended: { ...round, number: ended.number + 1 } }));
    this.#round = { uploaded: 0, stopped: [] };
  }

  async #run(id: string): Promise<void> {
    const stop = new AbortController();
    this.#stops.set(id, stop);
    this.#change(id, { state: this.#listed(id)?.file === null ? "checking" : "sending", sent: 0 });
    try {
      const finished = await this.#finish(id, stop.signal);
      if (finished.state === "ready") {
        this.#round = { ...this.#round, uploaded: this.#round.uploaded + 1 };
        const conversation = this.#listed(id)?.to.conversation ?? null;
        if (conversation === null) {
          await this.#deps.filesChanged().catch(() => {});
          this.#remove(id);
        } else {
          this.#change(id, { state: "ready" });
          this.#ready.set(id, { id: finished.file_id!, name: finished.filename });
          this.#attachReady(conversation);
          await this.#deps.filesChanged().catch(() => {});
        }
      } else this.#stopped(id, problemOfUpload(finished));
    } catch (error) {
      this.#deps.noticeSignOut(error);
      if (stop.signal.aborted) await this.#end(id);
      else if (error === interrupted) this.#stopped(id, { kind: "interrupted", detail: "", retryAt: 0 });
      else this.#stopped(id, await explain(error, this.#listed(id)));
    } finally {
      this.#stops.delete(id);
      const conversation = this.#listed(id)?.to.conversation ?? null;
      if (conversation !== null) this.#attachReady(conversation);
      this.#advance();
    }
  }

  /** Adds the files that are ready to the next message of a conversation, in the order in which they were chosen. */
  #attachReady(conversation: string): void {
    for (const { id } of this.state
      .getState()
      .list.filter((one) => one.to.conversation === conversation && isOpen(one))) {
      const file = this.#ready.get(id);
      if (file === undefined) return;
      this.#ready.delete(id);
      this.#deps.attach(conversation, [file]);
      this.#remove(id);
    }
  }

  /** Creates an upload on the service unless it is there, and sends its content. Returns it in its final state. */
  async #finish(id: string, signal: AbortSignal): Promise<ServiceUpload> {
    const { requests } = this.#deps;
    const upload = this.#listed(id);
    if (upload === undefined) throw new Error("the upload was removed");
    let known =
      upload.uploadID === null
        ? await requests.create(await this.#named(upload), fileOf(upload))
        : await requests.get(upload.uploadID, false, signal);
    this.#change(id, { uploadID: known.upload_id });
    for (let conflicts = 0; ;) {
      signal.throwIfAborted();
      switch (known.state) {
        case "pending":
          this.#change(id, { state: "sending", sent: 0 });
          try {
            known = await requests.send(known.upload_id, fileOf(upload), {
              signal,
              onProgress: (sent) => this.#change(id, { sent }),
              onSent: () => this.#change(id, { state: "checking" }),
            });
          } catch (error) {
            // Another request sends the content, for example an earlier one whose connection the service does not know to
            // be lost, or the upload has ended.
            if (!(error instanceof Refusal) || error.status !== 409 || ++conflicts > maxConflicts) throw error;
            known = await requests.get(known.upload_id, false, signal);
          }
          break;
        case "receiving":
        case "scanning":
          this.#change(id, { state: "checking" });
          known = await requests.get(known.upload_id, true, signal);
          break;
        default:
          return known;
      }
    }
  }

  /** Returns an upload with the conversation that the request to create it names. */
  async #named(upload: QueuedUpload): Promise<QueuedUpload> {
    const { to, file, names: known } = upload;
    if (to.conversation === null || known !== undefined || file === null) return upload;
    const names = await this.#deps.conversationOfUpload(to.conversation);
    this.#change(upload.id, { names });
    return { ...upload, names };
  }

  /** Ends an upload that the user has cancelled. */
  async #end(id: string): Promise<void> {
    const uploadID = this.#listed(id)?.uploadID ?? null;
    if (uploadID !== null) await this.#discard(uploadID);
    this.#remove(id);
  }

  /** Cancels an upload on the service. If that fails, it expires by itself; if it has become a file, the file stays. */
  async #discard(uploadID: string): Promise<void> {
    try {
      await this.#deps.requests.cancel(uploadID);
    } catch (error) {
      this.#deps.noticeSignOut(error);
      await this.#deps.filesChanged().catch(() => {});
    }
  }
}

/** The file of an upload, to send it. */
function fileOf({ file }: QueuedUpload): File {
  if (file === null) throw interrupted;
  return file;
}

/** Returns why an upload has stopped. For a file that cannot be read, the browser reports only a lost connection. */
async function explain(error: unknown, upload: QueuedUpload | undefined): Promise<UploadProblem> {
  const problem = problemOfRefusal(error, Date.now());
  if (problem.kind !== "connection_lost" || upload === undefined || upload.file === null) return problem;
  try {
    await upload.file.slice(0, 1).arrayBuffer();
    return problem;
  } catch {
    return { ...problem, kind: "unreadable" };
  }
}
