// Maps a refused sign-in, registration or password change to texts: for the fields that are wrong, or for the whole
// form.
import type { Refusal } from "../../api/problem";
import type { SigningInMessageKey } from "../../messages/signing-in";

export type FormField = "email" | "password" | "display_name" | "current_password" | "new_password" | "token";

export interface FormErrors {
  fields: Partial<Record<FormField, SigningInMessageKey>>;
  form: SigningInMessageKey | null;
  /** When the user may try again, as a Date.now() time; 0: at once. */
  retryAt: number;
}

export const noErrors: FormErrors = { fields: {}, form: null, retryAt: 0 };

const fieldMessages: Record<FormField, SigningInMessageKey> = {
  email: "pages.auth.email_invalid",
  password: "pages.auth.password_weak",
  display_name: "pages.auth.name_invalid",
  current_password: "pages.auth.current_wrong",
  new_password: "pages.auth.password_weak",
  token: "pages.mail_link.invalid",
};

/** Texts for the codes of a 403 that do not concern the origin of the page. */
const forbidden: Readonly<Partial<Record<string, SigningInMessageKey>>> = {
  registration_closed: "pages.auth.registration_closed",
  mail_not_configured: "pages.auth.mail_off",
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
      return { fields: {}, form: "pages.auth.wrong", retryAt: 0 };
    case 403:
      return {
        fields: {},
        form: forbidden[refusal.code] ?? "pages.auth.wrong_origin",
        retryAt: 0,
      };
    case 409:
      return refusal.code === "email_taken"
        ? { fields: { email: "pages.auth.email_taken" }, form: null, retryAt: 0 }
        : { fields: {}, form: "pages.auth.conflict", retryAt: 0 };
    case 422:
      return fieldErrorsOf(refusal.problem?.errors ?? []);
    case 429:
      return { fields: {}, form: "pages.auth.too_many", retryAt: until };
    case 0:
      return { fields: {}, form: creates ? "pages.auth.outcome_unknown" : "pages.auth.unreachable", retryAt: until };
    default:
      return { fields: {}, form: creates ? "pages.auth.outcome_unknown" : "pages.auth.unavailable", retryAt: until };
  }
}

function fieldErrorsOf(errors: readonly { field: string }[]): FormErrors {
  const fields: FormErrors["fields"] = {};
  for (const { field } of errors) {
    const name = field.replace(/^body\./, "");
    if (name in fieldMessages) fields[name as FormField] = fieldMessages[name as FormField];
  }
  return { fields, form: Object.keys(fields).length === 0 ? "pages.auth.invalid" : null, retryAt: 0 };
}
