// A text field with its label, its hint and its validation error.
import { useId, useState, type ComponentProps, type ReactNode } from "react";
import { useMessages } from "../messages/localization";
import { IconButton } from "./button";
import { Icon } from "./icon";
import { signingInMessages } from "../messages/signing-in";

interface FieldProps extends ComponentProps<"input"> {
  label: string;
  hint?: string | undefined;
  /** The validation error of the value. */
  problem?: string | undefined;
  /** An element at the end of the field, inside its frame. */
  end?: ReactNode;
}

export function Field({ label, hint, problem, end, className = "", ...rest }: FieldProps) {
  const id = useId();
  const described = [hint !== undefined && `${id}-hint`, problem !== undefined && `${id}-problem`]
    .filter(Boolean)
    .join(" ");
  return (
    <div className={`flex flex-col gap-1.5 ${className}`}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      <span
        className={`flex items-center rounded-md border bg-raised focus-within:outline-2 focus-within:outline-offset-1 focus-within:outline-accent ${problem === undefined ? "border-edge" : "border-danger"}`}
      >
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

/** A password field that can show its value and warns when Caps Lock is on. */
export function PasswordField({ hint, ...rest }: Omit<FieldProps, "type" | "end">) {
  const t = useMessages(signingInMessages);
  const [shown, show] = useState(false);
  const [capsLock, setCapsLock] = useState(false);
  const checkCapsLock = (event: { getModifierState(key: string): boolean }) =>
    setCapsLock(event.getModifierState("CapsLock"));
  return (
    <Field
      {...rest}
      type={shown ? "text" : "password"}
      spellCheck={false}
      autoCapitalize="none"
      onKeyDown={checkCapsLock}
      onKeyUp={checkCapsLock}
      hint={capsLock ? t("pages.password.caps") : hint}
      end={
        <IconButton
          icon={shown ? "eyeOff" : "eye"}
          label={t("pages.password.show")}
          aria-pressed={shown}
          onClick={() => show(!shown)}
          className="me-1"
        />
      }
    />
  );
}
