// The dialog that asks for the values of the variables of a prompt.
import { useId, useRef, useState, type KeyboardEvent } from "react";
import type { Prompt } from "../../api/prompts";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { onTouchScreen } from "../../controls/media";
import { useLocalization, useMessages } from "../../messages/localization";
import { mentioningMessages } from "../../messages/mentioning";
import { fillIn, variablesOf } from "./prompt-variables";

interface VariablesDialogProps {
  prompt: Prompt;
  /** The values that are not asked for. */
  known: Readonly<Record<string, string>>;
  /** Called with the text of the prompt when the dialog has closed. */
  onFilled: (text: string) => void;
  onClose: () => void;
  returnTo: () => HTMLElement | null;
}

export function VariablesDialog({ prompt, known, onFilled, onClose, returnTo }: VariablesDialogProps) {
  const { t } = useLocalization();
  const text = useMessages(mentioningMessages);
  const id = useId();
  const [variables] = useState(() => variablesOf(prompt.text, known));
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(variables.map(({ name, proposed }) => [name, proposed])),
  );
  const submitted = useRef(false);
  const submit = () => {
    submitted.current = true;
    onClose();
  };
  const pressed = (event: KeyboardEvent) => {
    const composing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || composing || onTouchScreen()) return;
    event.preventDefault();
    submit();
  };
  return (
    <Dialog
      title={`/${prompt.name}`}
      description={prompt.description || undefined}
      onClose={onClose}
      returnTo={() => {
        // The field has to have the focus for the change, so it follows the dialog.
        if (submitted.current) onFilled(fillIn(prompt.text, { ...known, ...values }));
        return returnTo();
      }}
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {variables.map(({ name }, at) => (
          <div key={name} className="flex flex-col gap-1.5">
            <label htmlFor={`${id}-${at}`} dir="auto" className="text-sm font-medium text-as-parent">
              {name}
            </label>
            <textarea
              id={`${id}-${at}`}
              data-autofocus={at === 0 ? "" : undefined}
              dir="auto"
              rows={1}
              value={values[name]}
              onChange={({ target }) => setValues({ ...values, [name]: target.value })}
              onFocus={({ target }) => target.select()}
              onKeyDown={pressed}
              className="field-sizing-content max-h-[30dvh] min-h-11 resize-none rounded-md border border-edge bg-raised px-3 py-2.5 text-base"
            />
          </div>
        ))}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("pages.cancel")}</Button>
          <Button type="submit" look="primary">
            {text("mentioning.insert")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
