// Choices as native controls: Choice (radio buttons), Select (a list) and Check (a checkbox).
import { useId, type ReactNode } from "react";
import { Icon } from "./icon";

interface Option<T extends string> {
  value: T;
  label: string;
  hint?: string;
}

interface ChoiceProps<T extends string> {
  label: string;
  hint?: string;
  value: T;
  onChange: (value: T) => void;
  options: readonly Option<T>[];
}

export function Choice<T extends string>({ label, hint, value, onChange, options }: ChoiceProps<T>) {
  const id = useId();
  return (
    <fieldset aria-describedby={hint === undefined ? undefined : `${id}-hint`} className="min-w-0">
      <legend className="mb-1 text-sm font-medium">{label}</legend>
      {hint !== undefined && <Hint id={`${id}-hint`}>{hint}</Hint>}
      {options.map((option) => (
        <label
          key={option.value}
          className="-mx-2 flex min-h-9 cursor-pointer items-start gap-3 rounded-md px-2 py-1.5 hover:bg-hover pointer-coarse:min-h-11"
        >
          <input
            type="radio"
            name={id}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
            className="mt-0.5 size-4 shrink-0 accent-accent"
          />
          <span className="flex min-w-0 flex-col text-sm">
            {option.label}
            {option.hint !== undefined && <span className="text-faint">{option.hint}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** A select list. Each option may set its own lang attribute. */
export function Select<T extends string>({
  label,
  value,
  onChange,
  options,
  quiet = false,
}: Omit<ChoiceProps<T>, "options" | "hint"> & {
  options: readonly (Option<T> & { lang?: string })[];
  quiet?: boolean;
}) {
  const id = useId();
  return (
    <div className={quiet ? "" : "flex flex-col gap-1.5"}>
      <label htmlFor={id} className={quiet ? "sr-only" : "text-sm font-medium"}>
        {label}
      </label>
      <span
        className={`relative inline-flex w-fit items-center rounded-md ${quiet ? "text-soft hover:bg-hover" : "border border-edge bg-raised"}`}
      >
        {quiet && (
          <span className="pointer-events-none absolute start-2.5">
            <Icon name="globe" size={16} />
          </span>
        )}
        <select
          id={id}
          value={value}
          onChange={(event) => onChange(event.target.value as T)}
          className={`min-h-9 cursor-pointer appearance-none rounded-md bg-transparent pe-9 text-sm pointer-coarse:min-h-11 ${quiet ? "ps-9" : "ps-3"}`}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value} lang={option.lang} className="bg-raised text-ink">
              {option.label}
            </option>
          ))}
        </select>
        <span className="pointer-events-none absolute end-2.5">
          <Icon name="chevronDown" size={16} />
        </span>
      </span>
    </div>
  );
}

export function Check({
  label,
  hint,
  checked,
  onChange,
}: {
  label: string;
  hint?: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  const id = useId();
  return (
    <label className="-mx-2 flex min-h-9 cursor-pointer items-start gap-3 rounded-md px-2 py-1.5 text-sm hover:bg-hover pointer-coarse:min-h-11">
      <input
        type="checkbox"
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <span className="flex min-w-0 flex-col">
        {label}
        {hint !== undefined && <Hint id={`${id}-hint`}>{hint}</Hint>}
      </span>
    </label>
  );
}

function Hint({ id, children }: { id: string; children: ReactNode }) {
  return (
    <span id={id} className="block text-sm text-faint">
      {children}
    </span>
  );
}
