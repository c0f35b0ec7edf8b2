// Sends a file as the body of a request, with its progress. Not with fetch, which reports no progress of an upload.
import { countSignIns, fetchSession } from "./client";
import { noteSignIns, readRefusal, unreachable } from "./problem";
import { newUnloadGuard } from "./session-state";

interface Options {
  signal: AbortSignal;
  /** Called with the number of bytes that were sent. */
  onProgress: (sent: number) => void;
  /** Called when the whole file was sent and the response has not arrived. */
  onSent?: () => void;
}

/**
 * Sends a file and returns the body of the response. The browser reads the file while it sends it. Throws a Refusal if the
 * request fails. The browser asks the user before it leaves the page.
 */
export async function sendFile<Response>(
  method: "POST" | "PUT",
  path: string,
  file: File,
  { signal, onProgress, onSent }: Options,
): Promise<Response> {
  const preventUnload = newUnloadGuard();
  window.addEventListener("beforeunload", preventUnload);
  try {
    // In addition to the token, this checks the session before the whole file is sent.
    const { csrf_token } = await fetchSession();
    signal.throwIfAborted();
    const signIns = countSignIns();
    return await new Promise<Response>((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, path);
      // The service detects the type by the content.
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.setRequestHeader("X-CSRF-Token", csrf_token);
      request.upload.onprogress = ({ loaded }) => onProgress(Math.min(loaded, file.size));
      request.upload.onload = () => onSent?.();
      request.onload = () => {
        const { status, responseText } = request;
        if (status < 300) {
          try {
            return resolve(JSON.parse(responseText) as Response);
          } catch {
            return reject(unreachable()); // not a response of the service
          }
        }
        const headers = { "Retry-After": request.getResponseHeader("Retry-After") ?? "" };
        const response = noteSignIns(new globalThis.Response(responseText, { status, headers }), signIns);
        void readRefusal(response).then(reject);
      };
      request.onerror = () => reject(unreachable());
      request.onabort = () => reject(unreachable());
      signal.addEventListener("abort", () => request.abort(), { once: true });
      request.send(file);
    });
  } finally {
    window.removeEventListener("beforeunload", preventUnload);
  }
}
