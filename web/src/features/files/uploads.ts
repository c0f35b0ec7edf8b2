// Sends the files that the user has chosen. The uploads continue while the user visits other pages of the app.
import { create } from "zustand";
import { attach, setUploading } from "../../api/attachments";
import { api, body, Refusal } from "../../api/client";
import { filesChanged } from "../../api/files";
import { sendFile } from "../../api/send-file";
import { queryClient, sessionQuery } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import {
  declaredType,
  isOpen,
  reloaded,
  storedUploads,
  problemOfRefusal,
  problemOfSession,
  restarted,
  startable,
  type Destination,
  type QueuedUpload,
  type StoredUpload,
  type UploadProblem,
  type UploadSession,
} from "./upload-queue";

/** How long the service waits for a change of a session. */
const wait = "20s";
/** How many times another request may be sending the content of a session before this one gives up. */
const maxConflicts = 5;

interface Uploads {
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

export const useUploads = create<Uploads>(() => ({ list: [], ended: { number: 0, uploaded: 0, stopped: [] } }));

/** The signals that end running uploads, by upload. */
const stops = new Map<string, AbortController>();
let round: Omit<Round, "number"> = { uploaded: 0, stopped: [] };

const listed = (id: string): QueuedUpload | undefined => useUploads.getState().list.find((one) => one.id === id);

/** Changes the list, and notes which conversations have a message that waits for an upload. */
function update(change: (list: readonly QueuedUpload[]) => readonly QueuedUpload[]): void {
  useUploads.setState(({ list }) => ({ list: change(list) }));
  const { list } = useUploads.getState();
  store(storedUploads(list));
  const open = list.filter(isOpen);
  setUploading(open.flatMap(({ to }) => to.conversation ?? []));
}

function change(id: string, changes: Partial<QueuedUpload>): void {
  update((list) => list.map((one) => (one.id === id ? { ...one, ...changes } : one)));
}

/** Notes that an upload has stopped. */
function stopped(id: string, problem: UploadProblem): void {
  change(id, { state: "stopped", problem });
  const name = listed(id)?.name;
  if (name !== undefined) round = { ...round, stopped: [...round.stopped, name] };
}

function remove(id: string): void {
  update((list) => list.filter((one) => one.id !== id));
}

/** Adds files to the queue. */
export function addUploads(files: Iterable<File>, to: Destination): void {
  const added = [...files].map((file): QueuedUpload => {
    return {
      id: crypto.randomUUID(),
      key: crypto.randomUUID(),
      file,
      name: file.name,
      size: file.size,
      to,
      session: null,
      state: "waiting",
      sent: 0,
      problem: null,
    };
  });
  update((list) => [...list, ...added]);
  // The service refuses empty files.
  for (const { id, size } of added) if (size === 0) stopped(id, { kind: "empty", detail: "", retryAt: 0 });
  advance();
}

const storageKey = (): string =>
  `turnstone-uploads/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}`;
let stored = "[]";

function store(uploads: readonly StoredUpload[]): void {
  const next = JSON.stringify(uploads);
  if (next === stored) return;
  stored = next;
  try {
    sessionStorage.setItem(storageKey(), next);
  } catch {
    // The storage cannot be written; a reload then ends the uploads.
  }
}

let resumed = false;

/**
 * Continues the uploads that a reload of this page has interrupted, once. If the service has the whole content, it becomes a
 * file; otherwise the user has to choose the file again, because the browser no longer has it.
 */
export function resumeUploads(): void {
  if (resumed) return;
  resumed = true;
  try {
    const earlier = JSON.parse(sessionStorage.getItem(storageKey()) ?? "[]") as StoredUpload[];
    if (earlier.length === 0) return;
    update((list) => [...earlier.map(reloaded), ...list]);
  } catch {
    return; // the storage cannot be read
  }
  advance();
}

/** Starts an upload again that has stopped. */
export function retryUpload(id: string): void {
  const upload = listed(id);
  if (upload?.state !== "stopped") return;
  change(
    id,
    restarted(upload, () => crypto.randomUUID()),
  );
  advance();
}

/** Cancels an upload, or removes one that has stopped. */
export function cancelUpload(id: string): void {
  const upload = listed(id);
  const stop = stops.get(id);
  if (stop !== undefined) {
    change(id, { state: "cancelling" });
    return stop.abort();
  }
  remove(id);
  if (upload?.session != null) void discard(upload.session);
}

/** Starts as many waiting uploads as may run, and reports how all have ended if none is left. */
function advance(): void {
  const { list } = useUploads.getState();
  for (const { id } of startable(list)) void run(id);
  if (list.some(isOpen)) return;
  if (round.uploaded + round.stopped.length === 0) return; // only a cancelled upload has ended
  useUploads.setState(({ ended }) => ({ ended: { ...round, number: ended.number + 1 } }));
  round = { uploaded: 0, stopped: [] };
}

/** Thrown if the content has to be sent and the file is not known. */
const interrupted = new Error("the page was closed before the file was sent");

/** The file of an upload, to send it. */
function fileOf({ file }: QueuedUpload): File {
  if (file === null) throw interrupted;
  return file;
}

async function run(id: string): Promise<void> {
  const stop = new AbortController();
  stops.set(id, stop);
  change(id, { state: listed(id)?.file === null ? "checking" : "sending", sent: 0 });
  try {
    const session = await transfer(id, stop.signal);
    if (session.state === "ready") {
      round = { ...round, uploaded: round.uploaded + 1 };
      const conversation = listed(id)?.to.conversation ?? null;
      if (conversation !== null) attach(conversation, [{ id: session.file_id!, name: session.filename }]);
      await filesChanged().catch(() => {});
      remove(id);
    } else stopped(id, problemOfSession(session));
  } catch (error) {
    noticeSignOut(error);
    if (stop.signal.aborted) await end(id);
    else if (error === interrupted) stopped(id, { kind: "interrupted", detail: "", retryAt: 0 });
    else stopped(id, await explain(error, listed(id)));
  } finally {
    stops.delete(id);
    advance();
  }
}

/** Creates the session of an upload unless it has one, and sends its content. Returns the session in its final state. */
async function transfer(id: string, signal: AbortSignal): Promise<UploadSession> {
  const upload = listed(id);
  if (upload === undefined) throw new Error("the upload was removed");
  let session = upload.session === null ? await createSession(upload) : await getSession(upload.session, "0s", signal);
  change(id, { session: session.upload_id });
  for (let conflicts = 0; ;) {
    signal.throwIfAborted();
    switch (session.state) {
      case "pending":
        change(id, { state: "sending", sent: 0 });
        try {
          session = await sendContent(upload, session.upload_id, signal);
        } catch (error) {
          // Another request sends the content, for example an earlier one whose connection the service does not know to
          // be lost, or the session has ended.
          if (!(error instanceof Refusal) || error.status !== 409 || ++conflicts > maxConflicts) throw error;
          session = await getSession(session.upload_id, "0s", signal);
        }
        break;
      case "receiving":
      case "scanning":
        change(id, { state: "checking" });
        session = await getSession(session.upload_id, wait, signal);
        break;
      default:
        return session;
    }
  }
}

/** Not aborted by a cancel: the session has to be known, so that it can be ended. */
const createSession = async (upload: QueuedUpload): Promise<UploadSession> => {
  const { name, size, to, key } = upload;
  const media_type = declaredType(fileOf(upload));
  return body(
    api.POST("/files/uploads", {
      params: { header: { "Idempotency-Key": key } },
      body: {
        filename: name,
        media_type,
        size,
        ...(to.project === null
          ? { purpose: to.conversation === null ? "library" : "attachment" }
          : { purpose: "project", project_id: to.project }),
      },
    }),
  );
};

const getSession = (upload_id: string, wait: string, signal: AbortSignal): Promise<UploadSession> =>
  body(api.GET("/files/uploads/{upload_id}", { params: { path: { upload_id }, query: { wait } }, signal }));

const sendContent = async (upload: QueuedUpload, session: string, signal: AbortSignal): Promise<UploadSession> =>
  sendFile("PUT", `/files/uploads/${session}/content`, fileOf(upload), {
    signal,
    onProgress: (sent) => change(upload.id, { sent }),
    onSent: () => change(upload.id, { state: "checking" }),
  });

/** Ends an upload that the user has cancelled. */
async function end(id: string): Promise<void> {
  const session = listed(id)?.session ?? null;
  if (session !== null) await discard(session);
  remove(id);
}

/** Cancels a session. If that fails, the session expires by itself; if it has become a file, the file stays. */
async function discard(upload_id: string): Promise<void> {
  try {
    await api.DELETE("/files/uploads/{upload_id}", { params: { path: { upload_id } } });
  } catch (error) {
    noticeSignOut(error);
    await filesChanged().catch(() => {});
  }
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
