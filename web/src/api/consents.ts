// The consents of the account to sources of memory, and the location of a conversation, which needs one.
import { queryOptions } from "@tanstack/react-query";
import { maxLocationAccuracy } from "../generated/limits";
import { api, body, Refusal, type Schemas } from "./client";
import { queryClient, refetchInAllTabs } from "./queries";
import { noticeSignOut } from "./session-state";

export type Consent = Schemas["MemoryConsent"];
type StoredLocation = Schemas["LocationContext"];

/** To which sources of memory the account consents. */
export const consentsQuery = queryOptions({
  queryKey: ["consents"],
  queryFn: () => body(api.GET("/memory-sources")),
  staleTime: 60_000,
});

/** The location of a conversation; null: none is stored, or the account does not consent. */
export const locationQuery = (conversation_id: string) =>
  queryOptions({
    queryKey: ["location", conversation_id],
    queryFn: () =>
      body(
        api.GET("/conversations/{conversation_id}/location-context", { params: { path: { conversation_id } } }),
      ).catch((error: unknown) => {
        if (error instanceof Refusal && (error.status === 404 || error.code === "consent_required")) return null;
        throw error;
      }),
  });

/** Grants or revokes a consent, and updates what depends on it. */
export async function storeConsent(source: Consent["source"], granted: boolean, precise = false): Promise<void> {
  const stored = await body(
    api.PUT("/memory-sources/{source}/consent", { params: { path: { source } }, body: { granted, precise } }),
  );
  await queryClient.cancelQueries({ queryKey: consentsQuery.queryKey });
  queryClient.setQueryData(
    consentsQuery.queryKey,
    (list) => list && { ...list, data: list.data.map((one) => (one.source === source ? stored : one)) },
  );
  void refetchInAllTabs("consents");
  void refetchInAllTabs("tools");
  if (source === "location") void refetchInAllTabs("location");
}

/** The service keeps a location for 24 hours at most. The hour less is for clocks that differ. */
const lifetime = 23 * 3_600_000;
/** How long a browser may look for the position, in milliseconds. The user's decision is not part of it. */
const positionTimeout = 30_000;
/** How old a known position may be, in milliseconds. */
const positionAge = 60_000;

export type ShareFailure = "denied" | "unavailable" | "timeout" | "consent" | "clock" | "unknown" | "refused";

/**
 * Asks the browser for its position once and stores it for the tools of a conversation; before that it grants the consent, if
 * the account has none. Without a position, no consent is granted. Returns what is stored, or why nothing is; null: the signal
 * was aborted before the position was sent.
 */
export async function shareLocation(
  conversation_id: string,
  { granted, precise }: Pick<Consent, "granted" | "precise">,
  signal: AbortSignal,
): Promise<StoredLocation | ShareFailure | null> {
  const position = await currentPosition(precise);
  if (signal.aborted) return null;
  if (typeof position === "string") return position;
  const { latitude, longitude, accuracy } = position.coords;
  try {
    if (!granted) await storeConsent("location", true);
    const expires_at = new Date(Date.now() + lifetime).toISOString();
    const stored = await body(
      api.PUT("/conversations/{conversation_id}/location-context", {
        params: { path: { conversation_id } },
        body: { latitude, longitude, accuracy_m: Math.min(accuracy, maxLocationAccuracy), expires_at },
      }),
    );
    queryClient.setQueryData(locationQuery(conversation_id).queryKey, stored);
    void refetchInAllTabs("location", conversation_id);
    return stored;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    noticeSignOut(error);
    if (error.code === "consent_required") void refetchInAllTabs("consents");
    return failureOf(error);
  }
}

/** Asks the browser for its position; returns why there is none. */
function currentPosition(precise: boolean): Promise<GeolocationPosition | ShareFailure> {
  return new Promise((resolve) => {
    navigator.geolocation.getCurrentPosition(
      resolve,
      ({ code }) => resolve(code === 1 ? "denied" : code === 3 ? "timeout" : "unavailable"),
      { enableHighAccuracy: precise, timeout: positionTimeout, maximumAge: positionAge },
    );
  });
}

function failureOf(refusal: Refusal): ShareFailure {
  if (refusal.code === "consent_required") return "consent";
  if (refusal.problem?.errors?.some(({ field }) => field === "body.expires_at")) return "clock";
  return refusal.outcomeUnknown ? "unknown" : "refused";
}

/** Removes the location of a conversation. Returns whether it is removed. */
export async function removeLocation(conversation_id: string): Promise<boolean> {
  try {
    await api.DELETE("/conversations/{conversation_id}/location-context", { params: { path: { conversation_id } } });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    noticeSignOut(error);
    return false;
  }
  queryClient.setQueryData(locationQuery(conversation_id).queryKey, null);
  void refetchInAllTabs("location", conversation_id);
  return true;
}
