// Maps the failure of a sign-in with a provider to a text. Every page checks for one.
import type { MessageKey } from "../../messages/catalog";

/** Texts by the error code in the URL to which the service redirects after a failed sign-in with a provider. */
const providerMessages: Readonly<Record<string, MessageKey>> = {
  unauthenticated: "pages.providers.declined",
  registration_closed: "pages.auth.registration_closed",
  csrf: "pages.providers.expired",
  rate_limited: "pages.auth.too_many",
};

/** Returns why a sign-in with a provider failed, from the query of the URL; null: the query names no failure. */
export function providerFailureIn(query: string): MessageKey | null {
  const code = new URLSearchParams(query).get("refused");
  if (code === null) return null;
  return (Object.hasOwn(providerMessages, code) ? providerMessages[code] : undefined) ?? "pages.providers.unavailable";
}
