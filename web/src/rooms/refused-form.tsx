// What forms about passwords have in common: one try at a time, what was refused, and the wait that the service asks for.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { notice } from "../api/access";
import { Refusal } from "../api/problem";
import { Button } from "../controls/button";
import { useSecondsUntil } from "../controls/countdown";
import { Icon } from "../controls/icon";
import { useSpeech } from "../words/speech";
import { explain, nothingRefused, type EntryField, type Refused } from "./refused";

export interface Entry {
  busy: boolean;
  refused: Refused;
  form: React.RefObject<HTMLFormElement | null>;
  /** What to write beneath a field. */
  problem(field: EntryField): string | undefined;
  refuse(refused: Refused): void;
  submit(event: FormEvent): void;
}

/** Runs a try when the form is sent; creates: whether one that is not answered may have taken effect. */
export function useEntry(run: () => Promise<void>, creates = false): Entry {
  const { say } = useSpeech();
  const [busy, setBusy] = useState(false);
  const [refused, refuse] = useState(nothingRefused);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (refused === nothingRefused) return;
    const wrong = form.current?.querySelector<HTMLInputElement>("[aria-invalid]") ?? (refused.until === 0 ? form.current?.querySelector<HTMLInputElement>("input[autocomplete$=password]") : null);
    wrong?.focus();
    wrong?.select();
  }, [refused]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (busy || refused.until > Date.now()) return;
    setBusy(true);
    refuse(nothingRefused);
    run()
      .catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error;
        notice(error);
        refuse(explain(error, creates));
      })
      .finally(() => setBusy(false));
  };
  const problem = (field: EntryField) => refused.fields[field] && say(refused.fields[field]);
  return { busy, refused, form, problem, refuse, submit };
}

/** What is wrong as a whole. */
export function Wrong({ children }: { children: ReactNode }) {
  return (
    <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
      <span className="mt-0.5">
        <Icon name="warning" size={16} />
      </span>
      {children}
    </p>
  );
}

/** The foot of such a form: what was refused as a whole, and the button, which waits as long as the service asks for. */
export function EntryFoot({ entry, children, extra }: { entry: Entry; children: ReactNode; extra?: ReactNode }) {
  const { say } = useSpeech();
  const wait = useSecondsUntil(entry.refused.until);
  return (
    <>
      <div role="alert" className="empty:hidden">
        {entry.refused.whole !== null && <Wrong>{say(entry.refused.whole)}</Wrong>}
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        {extra}
        <Button type="submit" look="primary" aria-disabled={entry.busy || wait > 0} className="grow aria-disabled:opacity-70">
          {wait > 0 ? say("rooms.entry.wait", { seconds: wait }) : entry.busy ? say("rooms.entry.busy") : children}
        </Button>
      </div>
    </>
  );
}
