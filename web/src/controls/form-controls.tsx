// The controls of settings, as native controls: Segmented (radio buttons in a row), Select (a list) and Check (a checkbox).
import { useId, type ReactNode } from "react";
import { SelectList, type ChoiceProps, type SelectProps } from "./select-list";

/** Two to four short options in a row, as native radio buttons. */
export function Segmented<T extends string>({ label, hint, value, onChange, options }: ChoiceProps<T>) {
  const id = useId();
  return (
    <Setting id={id} label={label} hint={hint}>
      <div
        role="radiogroup"
        aria-labelledby={`${id}-label`}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        className="flex flex-wrap gap-0.5 rounded-md border border-line bg-sunken p-0.5 max-sm:w-full"
      >
        {options.map((option) => (
          <label
            key={option.value}
            className="relative flex min-h-8 grow items-center justify-center px-3 text-sm text-soft has-checked:font-medium has-checked:text-ink pointer-coarse:min-h-11"
          >
            <input
              type="radio"
              name={id}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
              className="absolute inset-0 cursor-pointer appearance-none rounded-sm border border-transparent checked:border-edge checked:bg-raised not-checked:hover:bg-hover forced-colors:checked:border-[Highlight]"
            />
            <span className="pointer-events-none relative">{option.label}</span>
          </label>
        ))}
      </div>
    </Setting>
  );
}

/** The label of a setting and its control: side by side, or one above the other if there is no space. */
function Setting({
  id,
  label,
  hint,
  control,
  children,
}: {
  id: string;
  label: string;
  hint: string | undefined;
  /** The id of the labelled control, unless the control names its label. */
  control?: string;
  children: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 py-3">
      <span className="min-w-0 grow basis-48">
        {control === undefined ? (
          <span id={`${id}-label`} className="text-sm font-medium">
            {label}
          </span>
        ) : (
          <label htmlFor={control} className="text-sm font-medium">
            {label}
          </label>
        )}
        {hint !== undefined && <Hint id={`${id}-hint`}>{hint}</Hint>}
      </span>
      {children}
    </div>
  );
}

/** A select list as a setting, with its label next to it. */
export function Select<T extends string>(props: SelectProps<T>) {
  const id = useId();
  return (
    <Setting id={id} label={props.label} hint={props.hint} control={id}>
      <SelectList {...props} id={id} className="border border-edge bg-raised" />
    </Setting>
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
