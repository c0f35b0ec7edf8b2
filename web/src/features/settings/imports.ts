// The imports of the account in TanStack Query's cache, and the upload of a file to import.
import { queryOptions } from "@tanstack/react-query";
import { create } from "zustand";
import { api, body, Refusal, type Schemas } from "../../api/client";
import { pagedQuery } from "../../api/paged-query";
import { refetchInAllTabs } from "../../api/queries";
import { sendFile } from "../../api/send-file";
import { noticeSignOut } from "../../api/session-state";
import { maxImportSize } from "../../generated/limits";

export type Import = Schemas["Import"];
export type ImportEntry = Schemas["ImportEntry"];

const pollInterval = 1_000;
/** How long the cancel of an upload waits for the service, in milliseconds; then it only stops sending. */
const cancelTimeout = 5_000;

export const isOpen = ({ state }: Import): boolean => ["receiving", "queued", "running"].includes(state);

/** The imports of the account, newest first. */
export const importsQuery = pagedQuery(["imports"], 20, (query) => api.GET("/account/imports", { params: { query } }), {
  refetchOnMount: "always",
  refetchOnWindowFocus: "always",
});

/**
 * An import while it is open. The account's feed does not report imports, so the query polls until the import has ended;
 * TanStack Query pauses this while the page is hidden.
 */
export const openImportQuery = (id: string) =>
  queryOptions({
    queryKey: ["imports", id],
    queryFn: () => body(api.GET("/account/imports/{import_id}", { params: { path: { import_id: id } } })),
    refetchInterval: ({ state: { data, error } }) => {
      const refused = error instanceof Refusal && !error.outcomeUnknown;
      return refused || (data !== undefined && !isOpen(data)) ? false : pollInterval;
    },
    refetchOnMount: "always",
    refetchOnWindowFocus: "always",
  });

/** Cancels an import. Succeeds if it has ended already. */
export async function cancelImport(id: string): Promise<void> {
  try {
    await api.DELETE("/account/imports/{import_id}", { params: { path: { import_id: id } } });
  } catch (refusal) {
    if (!(refusal instanceof Refusal) || ![404, 409].includes(refusal.status)) throw refusal;
  } finally {
    void refetchInAllTabs("imports");
  }
}

export interface Upload {
  name: string;
  size: number;
  /** The number of bytes that were sent. */
  sent: number;
  cancelling: boolean;
  /** Ends the request. */
  stop: AbortController;
}

export interface UploadOutcome {
  kind: "stored" | "cancelled" | "empty" | "too_large" | "busy" | "limited" | "unreadable" | "unknown" | "failed";
  /** The time from which the service accepts another upload, if the kind is limited; 0: it did not say. */
  retryAt: number;
  /** The import, if the kind is stored. */
  importID: string | null;
}

interface UploadState {
  current: Upload | null;
  /** How the last upload ended; null: none has, or another one has begun. */
  outcome: UploadOutcome | null;
}

/** The upload of this tab. It continues while the user visits other pages of the app. */
export const useUpload = create<UploadState>(() => ({ current: null, outcome: null }));

function end(kind: UploadOutcome["kind"], retryAt = 0, importID: string | null = null): void {
  useUpload.setState({ current: null, outcome: { kind, retryAt, importID } });
}

export const forgetOutcome = (): void => useUpload.setState({ outcome: null });

const update = (change: Partial<Upload>): void =>
  useUpload.setState(({ current }) => ({ current: current && { ...current, ...change } }));

/** Uploads a file to import. The browser reads it while it sends it. */
export async function uploadImport(file: File): Promise<void> {
  if (useUpload.getState().current !== null) return;
  if (file.size === 0) return end("empty");
  if (file.size > maxImportSize) return end("too_large");
  const stop = new AbortController();
  const { signal } = stop;
  const { name, size } = file;
  useUpload.setState({ current: { name, size, sent: 0, cancelling: false, stop }, outcome: null });
  try {
    const onProgress = (sent: number) => update({ sent });
    // The service recognises the format by the content.
    const { import_id } = await sendFile<Import>("POST", "/account/imports", file, { signal, onProgress });
    end("stored", 0, import_id);
  } catch (error) {
    noticeSignOut(error);
    if (signal.aborted || useUpload.getState().current?.cancelling === true) end("cancelled");
    else end(...outcomeOf(error));
  } finally {
    void refetchInAllTabs("imports");
  }
}

function outcomeOf(error: unknown): [kind: UploadOutcome["kind"], retryAt?: number] {
  if (!(error instanceof Refusal)) return ["failed"];
  if (error.outcomeUnknown) return ["unknown"];
  switch (error.status) {
    case 400:
    case 408: // the browser could not read the file to its end, for example because it was removed
      return ["unreadable"];
    case 409: // either another import is open, or another device has cancelled this one
      return [(error.problem?.current as Import | null | undefined)?.state === "cancelled" ? "cancelled" : "busy"];
    case 413:
      return ["too_large"];
    case 429:
      return ["limited", error.retryAfter > 0 ? Date.now() + error.retryAfter : 0];
    default:
      return ["failed"];
  }
}

/** Cancels the upload of this tab. */
export async function cancelUpload(): Promise<void> {
  const stop = useUpload.getState().current?.stop;
  update({ cancelling: true });
  try {
    // The service would record an interrupted upload as failed. An account has one open import, so the one that is being
    // received is that of this upload.
    const page = await body(
      api.GET("/account/imports", { params: { query: { limit: 1 } }, signal: AbortSignal.timeout(cancelTimeout) }),
    );
    const id = page.data.find(({ state }) => state === "receiving")?.import_id;
    if (id !== undefined && stop?.signal.aborted === false)
      await api.DELETE("/account/imports/{import_id}", {
        params: { path: { import_id: id } },
        signal: AbortSignal.timeout(cancelTimeout),
      });
  } catch {
    // The import of an upload that stops fails, and nothing of it is imported either.
  } finally {
    stop?.abort();
  }
}
