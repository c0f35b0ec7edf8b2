// Maps a refused sign-in, registration or password change to texts: for the fields that are wrong, or for the whole
// form.
import type { Refusal } from "../api/problem";
import type { MessageKey } from "../messages/catalog";

export type FormField = "email" | "password" | "display_name" | "current_password" | "new_password";

export interface FormErrors {
  fields: Partial<Record<FormField, MessageKey>>;
  form: MessageKey | null;
  /** When the user may try again, as a Date.now() time; 0: at once. */
  retryAt: number;
}

export const noErrors: FormErrors = { fields: {}, form: null, retryAt: 0 };

/** The service refuses shorter passwords; the form checks this first. */
export const minPasswordLength = 8;

const fieldMessages: Record<FormField, MessageKey> = {
  email: "pages.entry.email_wrong",
  password: "pages.entry.password_weak",
  display_name: "pages.entry.name_wrong",
  current_password: "pages.entry.current_wrong",
  new_password: "pages.entry.password_weak",
};

/** Returns the texts for a refused request. creates: whether the request may have created something. */
export function formErrorsOf(
  refusal: Pick<Refusal, "status" | "code" | "problem" | "retryAfter">,
  creates: boolean,
  now = Date.now(),
): FormErrors {
  const until = refusal.retryAfter > 0 ? now + refusal.retryAfter : 0;
  switch (refusal.status) {
    case 401:
      return { fields: {}, form: "pages.entry.wrong", retryAt: 0 };
    case 403:
      return {
        fields: {},
        form: refusal.code === "registration_closed" ? "pages.entry.closed" : "pages.entry.foreign",
        retryAt: 0,
      };
    case 409:
      return refusal.code === "email_taken"
        ? { fields: { email: "pages.entry.taken" }, form: null, retryAt: 0 }
        : { fields: {}, form: "pages.entry.again", retryAt: 0 };
    case 422:
      return fieldErrorsOf(refusal.problem?.errors ?? []);
    case 429:
      return { fields: {}, form: "pages.entry.too_many", retryAt: until };
    case 0:
      return { fields: {}, form: creates ? "pages.entry.unknown" : "pages.entry.unreachable", retryAt: until };
    default:
      return { fields: {}, form: creates ? "pages.entry.unknown" : "pages.entry.away", retryAt: until };
  }
}

/** Texts by the error code in the URL to which the service redirects after a failed sign-in with a provider. */
const providerMessages: Readonly<Record<string, MessageKey>> = {
  unauthenticated: "pages.providers.declined",
  registration_closed: "pages.entry.closed",
  csrf: "pages.providers.late",
  rate_limited: "pages.entry.too_many",
};

/** Returns why a sign-in with a provider failed, from the query of the URL; null: the query names no failure. */
export function providerFailureIn(query: string): MessageKey | null {
  const code = new URLSearchParams(query).get("refused");
  if (code === null) return null;
  return (Object.hasOwn(providerMessages, code) ? providerMessages[code] : undefined) ?? "pages.providers.away";
}

function fieldErrorsOf(errors: readonly { field: string }[]): FormErrors {
  const fields: FormErrors["fields"] = {};
  for (const { field } of errors) {
    const name = field.replace(/^body\./, "");
    if (name in fieldMessages) fields[name as FormField] = fieldMessages[name as FormField];
  }
  return { fields, form: Object.keys(fields).length === 0 ? "pages.entry.odd" : null, retryAt: 0 };
}
