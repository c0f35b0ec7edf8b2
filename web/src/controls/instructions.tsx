// The field for instructions, of a project or of the account. They are stored with a button.
import { useId, useState } from "react";
import { Refusal, type Schemas } from "../api/client";
import { noticeSignOut } from "../api/session-state";
import { maxInstructions } from "../generated/limits";
import { Button } from "./button";
import { useLocalization } from "../messages/localization";

interface InstructionsProps {
  stored: Schemas["Instructions"];
  label: string;
  hint: string;
  placeholder?: string;
  readOnly?: boolean;
  /** Stores a text that is based on a version. */
  put: (content: string, version: number) => Promise<Schemas["Instructions"]>;
  /** Called after every attempt to store. */
  onPut: () => void;
}

export function Instructions({ stored, label, hint, placeholder, readOnly, put, onPut }: InstructionsProps) {
  const { t } = useLocalization();
  const id = useId();
  /** The text that the user has typed, and the version that it is based on; null: nothing was typed. */
  const [edited, setEdited] = useState<{ text: string; version: number } | null>(null);
  const [state, setState] = useState<"" | "saving" | "saved" | "changed" | "failed">("");
  const save = async (version: number) => {
    if (edited === null) return;
    setState("saving");
    try {
      const saved = await put(edited.text, version);
      // What was typed meanwhile is based on the version that was stored.
      setEdited((now) =>
        now === null || now.text === edited.text ? null : { text: now.text, version: saved.version },
      );
      setState("saved");
    } catch (refusal) {
      noticeSignOut(refusal);
      setState(refusal instanceof Refusal && refusal.code === "stale_version" ? "changed" : "failed");
    } finally {
      onPut();
    }
  };
  return (
    <section className="flex flex-col gap-2">
      <label htmlFor={id} className="font-semibold">
        {label}
      </label>
      <p id={`${id}-hint`} className="text-sm text-soft">
        {hint}
      </p>
      <textarea
        id={id}
        dir="auto"
        rows={5}
        placeholder={placeholder}
        readOnly={readOnly}
        maxLength={maxInstructions}
        aria-describedby={`${id}-hint`}
        value={edited?.text ?? stored.content}
        onChange={({ target }) => {
          setState("");
          setEdited((before) => ({ text: target.value, version: before?.version ?? stored.version }));
        }}
        className="rounded-md border border-edge bg-raised px-3 py-2 text-base read-only:bg-sunken md:text-sm"
      />
      <div className="flex flex-wrap items-center gap-2">
        {edited !== null && state !== "changed" && (
          <>
            <Button look="primary" disabled={state === "saving"} onClick={() => void save(edited.version)}>
              {t("pages.projects.save")}
            </Button>
            <Button look="quiet" onClick={() => setEdited(null)}>
              {t("pages.cancel")}
            </Button>
          </>
        )}
        {edited !== null && state === "changed" && (
          <>
            <Button onClick={() => (setEdited(null), setState(""))}>{t("pages.projects.take_theirs")}</Button>
            <Button onClick={() => void save(stored.version)}>{t("pages.projects.use_mine")}</Button>
          </>
        )}
        <p role="status" className={`text-sm ${state === "saved" ? "text-soft" : "text-danger"}`}>
          {state === "saved" && t("pages.projects.saved")}
          {state === "changed" && t("pages.projects.changed")}
          {state === "failed" && t("pages.projects.failed")}
        </p>
      </div>
    </section>
  );
}
