// Choices as native controls: Segmented (radio buttons in a row), Select and QuietSelect (lists) and Check (a checkbox).
import { useId, type ReactNode } from "react";
import { Icon, type IconName } from "./icon";

interface Option<T extends string> {
  value: T;
  label: string;
}

interface ChoiceProps<T extends string> {
  label: string;
  /** Explains the chosen option. */
  hint?: string | undefined;
  value: T;
  onChange: (value: T) => void;
  options: readonly Option<T>[];
}

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

type SelectProps<T extends string> = Omit<ChoiceProps<T>, "options"> & {
  /** Each option may set its own lang attribute. */
  options: readonly (Option<T> & { lang?: string })[];
};

/** A select list as a setting, with its label next to it. */
export function Select<T extends string>(props: SelectProps<T>) {
  const id = useId();
  return (
    <Setting id={id} label={props.label} hint={props.hint} control={id}>
      <SelectList {...props} id={id} className="border border-edge bg-raised" />
    </Setting>
  );
}

/** A select list whose label only screen readers read, with an icon that shows its purpose. */
export function QuietSelect<T extends string>({ icon, ...props }: SelectProps<T> & { icon: IconName }) {
  const id = useId();
  return (
    <span className="relative inline-flex">
      <label htmlFor={id} className="sr-only">
        {props.label}
      </label>
      <span className="pointer-events-none absolute inset-y-0 start-2.5 z-10 flex items-center text-soft">
        <Icon name={icon} size={16} />
      </span>
      <SelectList {...props} id={id} className="text-soft hover:bg-hover [&_select]:ps-9" />
    </span>
  );
}

function SelectList<T extends string>({
  id,
  hint,
  value,
  onChange,
  options,
  className,
}: SelectProps<T> & { id: string; className: string }) {
  return (
    <span className={`relative inline-flex w-fit items-center rounded-md ${className}`}>
      <select
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        value={value}
        onChange={(event) => onChange(event.target.value as T)}
        className="min-h-9 cursor-pointer appearance-none rounded-md bg-transparent ps-3 pe-9 text-sm pointer-coarse:min-h-11"
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
