// A field for a part of a name, and the text that is searched while the user types in it.
import { useEffect, useState } from "react";
import { Icon } from "./icon";

interface SearchFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** In characters. */
  maxLength: number;
}

export function SearchField({ label, value, onChange, maxLength }: SearchFieldProps) {
  return (
    <label className="flex min-h-9 grow basis-56 items-center gap-2 rounded-md border border-edge bg-raised px-3 text-soft focus-within:outline-2 focus-within:outline-offset-1 focus-within:outline-accent pointer-coarse:min-h-11">
      <Icon name="search" size={16} />
      <input
        type="search"
        dir="auto"
        aria-label={label}
        placeholder={label}
        maxLength={maxLength}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="min-h-9 min-w-0 grow bg-transparent text-base text-ink outline-none placeholder:text-faint md:text-sm"
      />
    </label>
  );
}

/** Milliseconds after the last change of the text until it is searched. */
const searchDelay = 200;

/** Returns the trimmed text once it has not changed for a moment; an empty one at once. */
export function useSearchedText(typed: string): string {
  const text = typed.trim();
  const [searched, setSearched] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSearched(text), text === "" ? 0 : searchDelay);
    return () => clearTimeout(timer);
  }, [text]);
  return searched;
}
