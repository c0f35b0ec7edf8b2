// The pages to which the links of mails lead. They need no session. The token of a link is in the fragment of its URL, which
// browsers send to no server.
import { useEffect } from "react";

/** Whether the service sends mails; a meta tag of the document says so. */
export const sendsMail = document.querySelector<HTMLMetaElement>('meta[name="turnstone-mail"]')?.content === "true";

export type MailPage = "reset" | "confirm";

/** Returns the page of a link, by its path; null: the path is that of another page. */
export function mailPageOf(path: string): MailPage | null {
  if (path === "/reset-password") return "reset";
  return path === "/confirm-email" ? "confirm" : null;
}

/** Returns the token in the fragment of a URL; null: it contains none. */
export function tokenIn(hash: string): string | null {
  const token = hash.replace(/^#/, "");
  return /^mt1_[\w-]{20,180}$/.test(token) ? token : null;
}

/** Loads the page again when another link is opened in its tab: only the fragment changes, so the browser does not. */
export function useNewLink(): void {
  useEffect(() => {
    const load = () => location.reload();
    window.addEventListener("hashchange", load);
    return () => window.removeEventListener("hashchange", load);
  }, []);
}

/** Removes the token from the URL and from the history, because it was used. */
export const forgetLink = (): void => history.replaceState(history.state, "", location.pathname);
