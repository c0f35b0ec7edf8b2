// Puts a refusal of signing in, registering or changing a password into words: beside the field that is wrong, or for
// the whole form.
import type { Refusal } from "../api/problem";
import type { Word } from "../words/words";

export type EntryField = "email" | "password" | "display_name" | "current_password" | "new_password";

export interface Refused {
  fields: Partial<Record<EntryField, Word>>;
  whole: Word | null;
  /** When it may be tried again, in milliseconds of Date.now(); 0: at once. */
  until: number;
}

export const nothingRefused: Refused = { fields: {}, whole: null, until: 0 };

/** Shorter passwords are refused by the service; the form says so before. */
export const shortestPassword = 8;

const words: Record<EntryField, Word> = {
  email: "rooms.entry.email_wrong",
  password: "rooms.entry.password_weak",
  display_name: "rooms.entry.name_wrong",
  current_password: "rooms.entry.current_wrong",
  new_password: "rooms.entry.password_weak",
};

/** What a refusal means for who fills in the form; creates: whether something may have come into being. */
export function explain(refusal: Pick<Refusal, "status" | "code" | "problem" | "retryAfter">, creates: boolean, now = Date.now()): Refused {
  const until = refusal.retryAfter > 0 ? now + refusal.retryAfter : 0;
  switch (refusal.status) {
    case 401:
      return { fields: {}, whole: "rooms.entry.wrong", until: 0 };
    case 403:
      return { fields: {}, whole: refusal.code === "registration_closed" ? "rooms.entry.closed" : "rooms.entry.foreign", until: 0 };
    case 409:
      return refusal.code === "email_taken" ? { fields: { email: "rooms.entry.taken" }, whole: null, until: 0 } : { fields: {}, whole: "rooms.entry.again", until: 0 };
    case 422:
      return ofFields(refusal.problem?.errors ?? []);
    case 429:
      return { fields: {}, whole: "rooms.entry.too_many", until };
    case 0:
      return { fields: {}, whole: creates ? "rooms.entry.unknown" : "rooms.entry.unreachable", until };
    default:
      return { fields: {}, whole: creates ? "rooms.entry.unknown" : "rooms.entry.away", until };
  }
}

/** What the service writes into the address that it sends a browser to, which it has turned away from signing in with a provider. */
const providerWords: Readonly<Record<string, Word>> = {
  unauthenticated: "rooms.providers.declined",
  registration_closed: "rooms.entry.closed",
  csrf: "rooms.providers.late",
  rate_limited: "rooms.entry.too_many",
};

/** Why signing in with a provider did not work, by the query of the address; null: nothing says that it did not. */
export function turnedAwayIn(query: string): Word | null {
  const code = new URLSearchParams(query).get("refused");
  if (code === null) return null;
  return (Object.hasOwn(providerWords, code) ? providerWords[code] : undefined) ?? "rooms.providers.away";
}

function ofFields(errors: readonly { field: string }[]): Refused {
  const fields: Refused["fields"] = {};
  for (const { field } of errors) {
    const name = field.replace(/^body\./, "");
    if (name in words) fields[name as EntryField] = words[name as EntryField];
  }
  return { fields, whole: Object.keys(fields).length === 0 ? "rooms.entry.odd" : null, until: 0 };
}
