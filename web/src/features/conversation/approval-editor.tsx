// Edits the input of a call before it is approved: a form if all values are simple, otherwise the JSON.
import { useEffect, useId, useRef, useState } from "react";
import { Button } from "../../controls/button";
import { approvingMessages, type ApprovingMessageKey } from "../../messages/approving";
import { useMessages } from "../../messages/localization";
import { fieldsOf, readInput, readNumber, type FieldValue } from "./approval-input";

interface EditorProps {
  input: unknown;
  busy: boolean;
  onSend(input: Record<string, unknown>): void;
  onCancel(): void;
}

export function ApprovalEditor({ input, busy, onSend, onCancel }: EditorProps) {
  const t = useMessages(approvingMessages);
  const fields = fieldsOf(input);
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries((fields ?? []).map(([name, value]) => [name, String(value)])),
  );
  const [json, setJSON] = useState(() => JSON.stringify(input, null, 2));
  /** The field whose text cannot be read. */
  const [wrong, setWrong] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("textarea, input")?.focus(), []);
  const submit = () => {
    const edited = fields === null ? readInput(json) : readFields(fields, texts);
    if (edited !== null && typeof edited === "object") return onSend(edited);
    setWrong(edited ?? "");
    form.current?.querySelector<HTMLElement>(`[name="${CSS.escape(edited ?? "")}"]`)?.focus();
  };
  return (
    <form
      ref={form}
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) submit();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.nativeEvent.isComposing) return;
        event.stopPropagation(); // Escape also stops the answer
        onCancel();
      }}
    >
      {fields === null ? (
        <TextArea
          name=""
          label={t("approving.json")}
          value={json}
          problem={wrong === "" ? "approving.edit.not_json" : null}
          onChange={setJSON}
        />
      ) : (
        fields.map(([name, value]) => {
          const change = (text: string) => setTexts((before) => ({ ...before, [name]: text }));
          return typeof value === "boolean" ? (
            <label key={name} className="flex min-h-9 items-center gap-3 font-mono text-xs pointer-coarse:min-h-11">
              <input
                type="checkbox"
                name={name}
                checked={texts[name] === "true"}
                onChange={(event) => change(String(event.target.checked))}
                className="size-4 accent-accent"
              />
              {name}
            </label>
          ) : (
            <TextArea
              key={name}
              name={name}
              label={name}
              value={texts[name] ?? ""}
              problem={wrong === name ? "approving.edit.not_number" : null}
              onChange={change}
            />
          );
        })
      )}
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="primary" icon="check" disabled={busy}>
          {t("approving.edit.send")}
        </Button>
        <Button look="quiet" disabled={busy} onClick={onCancel}>
          {t("approving.back")}
        </Button>
      </div>
    </form>
  );
}

/** Returns the input of the form; the name of the field whose text is not a number, if there is one. */
function readFields(
  fields: readonly [string, FieldValue][],
  texts: Readonly<Record<string, string>>,
): Record<string, unknown> | string {
  const input: [string, unknown][] = [];
  for (const [name, before] of fields) {
    const text = texts[name] ?? "";
    const value = typeof before === "number" ? readNumber(text) : typeof before === "boolean" ? text === "true" : text;
    if (value === null) return name;
    input.push([name, value]);
  }
  return Object.fromEntries(input);
}

interface TextAreaProps {
  name: string;
  label: string;
  value: string;
  problem: ApprovingMessageKey | null;
  onChange(text: string): void;
}

function TextArea({ name, label, value, problem, onChange }: TextAreaProps) {
  const t = useMessages(approvingMessages);
  const id = useId();
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-mono text-xs wrap-anywhere text-soft">
        {label}
      </label>
      <textarea
        id={id}
        name={name}
        dir="auto"
        rows={1}
        spellCheck={false}
        value={value}
        aria-invalid={problem !== null || undefined}
        aria-describedby={problem === null ? undefined : `${id}-problem`}
        onChange={(event) => onChange(event.target.value)}
        className={`field-sizing-content max-h-[40dvh] rounded-md border bg-raised px-3 py-2 text-base wrap-anywhere md:text-sm ${problem === null ? "border-edge" : "border-danger"}`}
      />
      {problem !== null && (
        <p id={`${id}-problem`} role="alert" className="text-danger">
          {t(problem)}
        </p>
      )}
    </div>
  );
}
