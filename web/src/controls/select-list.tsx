// Select lists as native controls: QuietSelect, and the list of the setting Select. In a module of its own because the first
// page needs no other control of settings.
import { useId } from "react";
import { Icon, type IconName } from "./icon";

interface Option<T extends string> {
  value: T;
  label: string;
}

export interface ChoiceProps<T extends string> {
  label: string;
  /** Explains the chosen option. */
  hint?: string | undefined;
  value: T;
  onChange: (value: T) => void;
  options: readonly Option<T>[];
}

export type SelectProps<T extends string> = Omit<ChoiceProps<T>, "options"> & {
  /** Each option may set its own lang attribute. */
  options: readonly (Option<T> & { lang?: string })[];
};

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

export function SelectList<T extends string>({
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
