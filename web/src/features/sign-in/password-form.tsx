// The common parts of the password forms: one submission at a time, its errors, and the wait that the service requires.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { noticeSignOut } from "../../api/session-state";
import { Refusal } from "../../api/problem";
import { Button } from "../../controls/button";
import { useSecondsUntil } from "../../controls/countdown";
import { FormError } from "../../controls/form-error";
import { useMessages } from "../../messages/localization";
import { formErrorsOf, noErrors, type FormField, type FormErrors } from "./form-errors";
import { signingInMessages } from "../../messages/signing-in";

export interface FormState {
  busy: boolean;
  refused: FormErrors;
  form: React.RefObject<HTMLFormElement | null>;
  /** Returns the error text of a field; undefined: none. */
  problem(field: FormField): string | undefined;
  refuse(refused: FormErrors): void;
  submit(event: FormEvent): void;
}

/**
 * Returns the state of a form that calls run when it is submitted. creates: whether a request without a response may
 * still have created something.
 */
export function useForm(run: () => Promise<void>, creates = false): FormState {
  const t = useMessages(signingInMessages);
  const [busy, setBusy] = useState(false);
  const [refused, refuse] = useState(noErrors);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (refused === noErrors) return;
    const wrong =
      form.current?.querySelector<HTMLInputElement>("[aria-invalid]") ??
      (refused.retryAt === 0 ? form.current?.querySelector<HTMLInputElement>("input[autocomplete$=password]") : null);
    wrong?.focus();
    wrong?.select();
  }, [refused]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (busy || refused.retryAt > Date.now()) return;
    setBusy(true);
    refuse(noErrors);
    run()
      .catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error;
        noticeSignOut(error);
        refuse(formErrorsOf(error, creates));
      })
      .finally(() => setBusy(false));
  };
  const problem = (field: FormField) => refused.fields[field] && t(refused.fields[field]);
  return { busy, refused, form, problem, refuse, submit };
}

/**
 * The foot of a form: the error that concerns the whole form, and the submit button, which is disabled until the wait
 * that the service requires is over.
 */
export function FormFooter({ entry, children, extra }: { entry: FormState; children: ReactNode; extra?: ReactNode }) {
  const t = useMessages(signingInMessages);
  const wait = useSecondsUntil(entry.refused.retryAt);
  return (
    <>
      <div role="alert" className="empty:hidden">
        {entry.refused.form !== null && <FormError>{t(entry.refused.form)}</FormError>}
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        {extra}
        <Button
          type="submit"
          look="primary"
          aria-disabled={entry.busy || wait > 0}
          className="grow aria-disabled:opacity-70"
        >
          {wait > 0 ? t("pages.auth.wait", { seconds: wait }) : entry.busy ? t("pages.auth.busy") : children}
        </Button>
      </div>
    </>
  );
}
