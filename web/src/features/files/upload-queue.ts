// The uploads of this tab as data: which of them may start, what a response means for one, and what a retry needs. Pure.
import type { Schemas } from "../../api/client";
import { Refusal } from "../../api/problem";

/** An upload as the service has it. */
export type ServiceUpload = Schemas["Upload"];

/** How many files are sent at a time. The browser keeps its other connections for the rest of the app. */
export const maxSending = 3;

/** Why an upload has stopped. */
export interface UploadProblem {
  kind: ProblemKind;
  /** The explanation of the service; empty: none. */
  detail: string;
  /** The time from which the service accepts another try; 0: at once. */
  retryAt: number;
}

export type ProblemKind =
  | "empty"
  | "too_large"
  | "unsupported"
  | "name"
  | "malware"
  | "content_mismatch"
  | "encrypted"
  | "unscannable"
  | "failed"
  | "expired"
  | "cancelled"
  | "interrupted"
  | "unreadable"
  | "limited"
  | "unavailable"
  | "connection_lost"
  | "signed_out"
  | "refused";

/** Where a file goes, besides the library. */
export interface Destination {
  /** The project of which it becomes a file; null: none. */
  readonly project: string | null;
  /** The conversation for whose next message it is; null: none. */
  readonly conversation: string | null;
}

export interface QueuedUpload {
  readonly id: string;
  /** The file; null after a reload of the page, which loses it: then the service must have the whole content already. */
  readonly file: File | null;
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  readonly to: Destination;
  /** The Idempotency-Key of the request that creates it on the service. */
  readonly key: string;
  /**
   * The conversation that the request to create it names; null: none; undefined: that is not decided yet. It stays the same with
   * the key.
   */
  readonly names?: string | null | undefined;
  /** Its identifier on the service; null: it has none yet. */
  readonly uploadID: string | null;
  /** ready: it is a file, which waits for the files that were chosen before it. */
  readonly state: "waiting" | "sending" | "checking" | "ready" | "cancelling" | "stopped";
  /** The number of bytes that were sent. */
  readonly sent: number;
  /** Why it has stopped; null: it has not. */
  readonly problem: UploadProblem | null;
}

/**
 * Returns the media type to declare for a file. The browser derives a type from the name, differently on every system, so
 * the service detects it in the content. Videos are the exception, so that they are refused before they are sent.
 */
export const declaredType = ({ name, type }: Pick<File, "name" | "type">): string =>
  type.startsWith("video/") && !name.toLowerCase().endsWith(".ts") ? type : "application/octet-stream";

/** What a tab stores of an upload, so that a reload of the page can continue it. */
export type StoredUpload = Pick<QueuedUpload, "id" | "name" | "size" | "to" | "key" | "uploadID">;

/** The uploads to store: those that a reload would interrupt or has interrupted, also if they have stopped for a moment. */
export const storedUploads = (list: readonly QueuedUpload[]): StoredUpload[] =>
  list
    .filter((upload) => isOpen(upload) || upload.problem?.kind === "interrupted" || retryOf(upload) === "continue")
    .map(({ id, name, size, to, key, uploadID }) => ({ id, name, size, to, key, uploadID }));

/** Returns an upload of an earlier page that waits to be continued. */
export const reloaded = (stored: StoredUpload & { session?: string | null }): QueuedUpload => ({
  ...stored,
  uploadID: stored.uploadID ?? stored.session ?? null, // earlier versions of the app stored it as session
  file: null,
  state: "waiting",
  sent: 0,
  problem: null,
});

const isSending = ({ state }: QueuedUpload): boolean => ["sending", "checking"].includes(state);

export const isOpen = (upload: QueuedUpload): boolean => upload.state !== "stopped";

/** Returns the uploads that may start now, in the order in which they were added. */
export const startable = (list: readonly QueuedUpload[]): readonly QueuedUpload[] =>
  list.filter(({ state }) => state === "waiting").slice(0, Math.max(0, maxSending - list.filter(isSending).length));

const problem = (kind: ProblemKind, detail = "", retryAt = 0): UploadProblem => ({ kind, detail, retryAt });

/** Returns why an upload has become no file, in a final state other than ready. */
export function problemOfUpload({ state, failure }: ServiceUpload): UploadProblem {
  if (state === "expired" || state === "cancelled") return problem(state);
  switch (failure?.code) {
    case "malware":
    case "content_mismatch":
    case "encrypted":
    case "unscannable":
      return problem(failure.code);
  }
  return problem("failed", failure?.detail);
}

/** Returns why a request of an upload was refused. */
export function problemOfRefusal(refusal: unknown, now: number): UploadProblem {
  if (!(refusal instanceof Refusal)) return problem("refused");
  const { status, detail, retryAfter } = refusal;
  const retryAt = retryAfter > 0 ? now + retryAfter : 0;
  switch (status) {
    case 0:
    case 400: // the content has ended early
    case 408:
      return problem("connection_lost");
    case 401:
      return problem("signed_out");
    case 410:
      return problem("expired");
    case 413:
      return problem("too_large", detail);
    case 415:
      return problem("unsupported");
    case 422:
      return refusal.problem?.errors?.some(({ field }) => field.endsWith("filename")) === true
        ? problem("name")
        : problem("refused", detail);
    case 429:
      return problem("limited", detail, retryAt);
  }
  return status >= 500 ? problem("unavailable", "", retryAt) : problem("refused", detail);
}

/**
 * What another try means: to continue the upload on the service, or to send the file in a new one; null: it cannot help, or the
 * file is not known.
 */
export function retryOf({ problem, file }: Pick<QueuedUpload, "problem" | "file">): "continue" | "again" | null {
  switch (problem?.kind) {
    case "connection_lost":
    case "unavailable":
    case "limited":
    case "signed_out":
      return "continue";
    case "expired":
    case "failed":
    case "cancelled":
    case "refused":
    case "too_large": // after other files were deleted
      return file === null ? null : "again";
  }
  return null;
}

/** Returns an upload that waits for another try. newKey creates an Idempotency-Key. */
export const restarted = (upload: QueuedUpload, newKey: () => string): QueuedUpload => ({
  ...upload,
  ...(retryOf(upload) === "again" ? { uploadID: null, key: newKey(), names: undefined } : {}),
  state: "waiting",
  sent: 0,
  problem: null,
});
