// The dialog that writes a prompt: a new one, or another version of one.
import { useId, useRef, useState } from "react";
import { Refusal } from "../../api/client";
import { changePrompt, createPrompt, promptsChanged, type Prompt, type PromptContent } from "../../api/prompts";
import { noticeSignOut } from "../../api/session-state";
import { maxPromptDescription, maxPromptName, maxPromptText } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { FormError } from "../../controls/form-error";
import { Icon } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { promptMessages, type PromptMessageKey } from "../../messages/prompts";

interface PromptDialogProps {
  /** The prompt that is changed; null: a new one. */
  prompt: Prompt | null;
  /** The project of a new prompt; null: it belongs to the account. */
  project: string | null;
  /** The text of a new prompt. */
  text?: string;
  onClose: () => void;
  returnTo?: () => HTMLElement | null;
}

/** How variables are written. */
const examples = { variable: "{{topic}}", preset: "{{topic:tides}}", date: "{{date}}", time: "{{time}}" };

const lengthOf = (text: string) => [...text].length;

export function PromptDialog({ prompt, project, text = "", onClose, returnTo }: PromptDialogProps) {
  const t = useMessages(promptMessages);
  const id = useId();
  const [content, setContent] = useState<PromptContent>(prompt ?? { name: "", description: "", text });
  /** The version on which the change is based. */
  const [version, setVersion] = useState(prompt?.version ?? 0);
  const [problem, setProblem] = useState<PromptMessageKey | null>(null);
  /** What another device has stored meanwhile. */
  const [theirs, setTheirs] = useState<Prompt | null>(null);
  const [saving, setSaving] = useState(false);
  const key = useRef(crypto.randomUUID());
  const { name, description } = content;
  const length = lengthOf(content.text);
  const complete = name.trim() !== "" && content.text.trim() !== "" && length <= maxPromptText;
  const edit = (change: Partial<PromptContent>) => {
    setProblem(null);
    setContent({ ...content, ...change });
  };
  const save = async (base: number) => {
    setSaving(true);
    setProblem(null);
    try {
      const { description, text } = content;
      const wanted = { name: name.trim(), description, text };
      const stored = await (prompt === null
        ? createPrompt(project, wanted, key.current)
        : changePrompt(prompt.prompt_id, base, wanted));
      toast(t("prompts.saved", { name: stored.name }));
      onClose();
    } catch (refusal) {
      noticeSignOut(refusal);
      // The outcome of a request without a response may be unknown: only its repetition has the same key.
      if (!(refusal instanceof Refusal && refusal.outcomeUnknown)) key.current = crypto.randomUUID();
      if (refusal instanceof Refusal && refusal.code === "stale_version") {
        const current = refusal.problem?.current as Prompt;
        setTheirs(current);
        setVersion(current.version);
      } else setProblem(problemOf(refusal));
    } finally {
      setSaving(false);
      void promptsChanged();
    }
  };
  return (
    <Dialog
      wide
      title={t(prompt === null ? "prompts.new" : "prompts.edit")}
      onClose={onClose}
      {...(returnTo && { returnTo })}
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (complete && !saving && theirs === null) void save(version);
        }}
      >
        <Field
          data-autofocus=""
          dir="auto"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          label={t("prompts.name")}
          hint={t("prompts.name_hint")}
          maxLength={maxPromptName}
          value={name}
          onChange={({ target }) => edit({ name: target.value.replace(/\s/g, "-") })}
          problem={problem !== null && ofName.includes(problem) ? t(problem) : undefined}
        />
        <Field
          dir="auto"
          autoComplete="off"
          label={t("prompts.description")}
          maxLength={maxPromptDescription}
          value={description}
          onChange={({ target }) => edit({ description: target.value })}
        />
        <div className="flex flex-col gap-1.5">
          <label htmlFor={id} className="text-sm font-medium">
            {t("prompts.text")}
          </label>
          <textarea
            id={id}
            dir="auto"
            rows={8}
            aria-invalid={length > maxPromptText || undefined}
            aria-describedby={length > maxPromptText ? `${id}-hint ${id}-problem` : `${id}-hint`}
            value={content.text}
            onChange={({ target }) => edit({ text: target.value })}
            className="rounded-md border border-edge bg-raised px-3 py-2 text-base aria-invalid:border-danger md:text-sm"
          />
          <p id={`${id}-hint`} className="text-sm text-faint">
            {t("prompts.text_hint", examples)}
          </p>
          {length > maxPromptText && (
            <p id={`${id}-problem`} className="flex items-center gap-1.5 text-sm text-danger">
              <Icon name="warning" size={16} />
              {t("prompts.too_long", { length, most: maxPromptText })}
            </p>
          )}
        </div>
        <div role="status" className="empty:hidden">
          {theirs !== null && <FormError>{t("prompts.changed")}</FormError>}
          {problem !== null && !ofName.includes(problem) && <FormError>{t(problem)}</FormError>}
        </div>
        <div className="flex flex-wrap justify-end gap-2">
          {theirs === null ? (
            <>
              <Button onClick={onClose}>{t("pages.cancel")}</Button>
              <Button type="submit" look="primary" disabled={!complete || saving}>
                {t("pages.projects.save")}
              </Button>
            </>
          ) : (
            <>
              <Button
                onClick={() => {
                  setContent(theirs);
                  setTheirs(null);
                }}
              >
                {t("pages.projects.take_theirs")}
              </Button>
              <Button
                disabled={!complete || saving}
                onClick={() => {
                  setTheirs(null);
                  void save(version);
                }}
              >
                {t("pages.projects.use_mine")}
              </Button>
            </>
          )}
        </div>
      </form>
    </Dialog>
  );
}

/** The problems that the field of the name shows. */
const ofName: readonly PromptMessageKey[] = ["prompts.name_taken", "prompts.name_invalid"];

function problemOf(refusal: unknown): PromptMessageKey {
  if (!(refusal instanceof Refusal)) return "prompts.failed";
  if (refusal.code === "name_taken") return "prompts.name_taken";
  if (refusal.code === "too_many_prompts") return "prompts.limit";
  if (refusal.status === 404) return "prompts.gone";
  return refusal.status === 422 ? "prompts.name_invalid" : "prompts.failed";
}
