// What a share includes of a conversation, as a list of checkboxes: nothing unless the user chooses it.
import { useId } from "react";
import { Check } from "../../controls/form-controls";

interface Choice {
  id: string;
  label: string;
  hint: string;
}

interface ChoicesProps {
  legend: string;
  hint: string;
  choices: readonly Choice[];
  chosen: readonly string[];
  /** How many can be chosen. */
  most: number;
  onChange: (chosen: readonly string[]) => void;
}

export function Choices({ legend, hint, choices, chosen, most, onChange }: ChoicesProps) {
  const id = useId();
  return (
    <fieldset aria-describedby={id} className="min-w-0 pt-3">
      <legend className="float-start w-full text-sm font-medium">{legend}</legend>
      <p id={id} className="clear-both text-sm text-soft">
        {hint}
      </p>
      <div className="max-h-40 overflow-y-auto px-2">
        {choices.map((choice) => (
          <Check
            key={choice.id}
            label={choice.label}
            hint={choice.hint}
            checked={chosen.includes(choice.id)}
            onChange={(checked) => onChange(choose(chosen, choice.id, checked, most))}
          />
        ))}
      </div>
    </fieldset>
  );
}

/** Returns what is chosen after a change of one checkbox, in the order in which it was chosen. Beyond the limit, nothing is added. */
export function choose(chosen: readonly string[], id: string, checked: boolean, most: number): readonly string[] {
  const others = chosen.filter((one) => one !== id);
  return checked ? [...others, id].slice(0, most) : others;
}
