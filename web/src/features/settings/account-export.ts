// The export of the account, which the browser downloads.
import { fetchSession, Refusal } from "../../api/client";

/**
 * Starts the download. Throws a Refusal if the session has ended, if it needs a recent sign-in, or if the service is not
 * available: the browser reports a refused download, but not its reason.
 */
export async function downloadExport(): Promise<void> {
  const session = await fetchSession();
  if (session.reauthenticated_until === null) throw new Refusal(403, "reauth_required", "", null, 0);
  const link = document.createElement("a");
  link.href = "/account/export";
  link.download = ""; // the service names the file
  link.click();
}
