// A field with its label, and what is wrong with it beneath.
import { useId, useState, type ComponentProps, type ReactNode } from "react";
import { useSpeech } from "../words/speech";
import { IconButton } from "./button";
import { Icon } from "./icon";

interface FieldProps extends ComponentProps<"input"> {
  label: string;
  hint?: string | undefined;
  /** What is wrong with the value. */
  problem?: string | undefined;
  /** Stands at the end of the field, within its frame. */
  end?: ReactNode;
}

export function Field({ label, hint, problem, end, className = "", ...rest }: FieldProps) {
  const id = useId();
  const described = [hint !== undefined && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean).join(" ");
  return (
    <div className={`flex flex-col gap-1.5 ${className}`}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      <span className={`flex items-center rounded-md border bg-raised focus-within:outline-2 focus-within:outline-offset-1 focus-within:outline-tide ${problem === undefined ? "border-edge" : "border-danger"}`}>
        <input
          id={id}
          aria-invalid={problem !== undefined || undefined}
          aria-describedby={described || undefined}
          className="min-h-11 min-w-0 grow rounded-md bg-transparent px-3 text-base outline-none"
          {...rest}
        />
        {end}
      </span>
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-sm text-faint">
          {hint}
        </p>
      )}
      {problem !== undefined && (
        <p id={`${id}-problem`} className="flex items-center gap-1.5 text-sm text-danger">
          <Icon name="warning" size={16} />
          {problem}
        </p>
      )}
    </div>
  );
}

/** A password: can be shown, and says when the capitals are locked. */
export function PasswordField({ hint, ...rest }: Omit<FieldProps, "type" | "end">) {
  const { say } = useSpeech();
  const [shown, show] = useState(false);
  const [locked, lock] = useState(false);
  const look = (event: { getModifierState(key: string): boolean }) => lock(event.getModifierState("CapsLock"));
  return (
    <Field
      {...rest}
      type={shown ? "text" : "password"}
      spellCheck={false}
      autoCapitalize="none"
      onKeyDown={look}
      onKeyUp={look}
      hint={locked ? say("rooms.password.caps") : hint}
      end={<IconButton icon={shown ? "eyeOff" : "eye"} label={say("rooms.password.show")} aria-pressed={shown} onClick={() => show(!shown)} className="me-1" />}
    />
  );
}
