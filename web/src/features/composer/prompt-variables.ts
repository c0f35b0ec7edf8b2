// The variables in the text of a prompt: {{name}} and {{name:default}}. Anything else in braces stays text. Pure.
export interface Variable {
  name: string;
  /** The value that is proposed; empty: none. */
  proposed: string;
}

/**
 * The name begins with a letter, and has letters, digits, hyphens, underscores and single spaces. Three braces are no variable:
 * other languages of templates have them.
 */
const variable = /(?<!\{)\{\{\s*(\p{L}[\p{L}\p{M}\p{Nd}_-]*(?: [\p{L}\p{M}\p{Nd}_-]+)*)\s*(?::([^{}]*))?\}\}(?!\})/gu;

/** Returns the variables of a text whose values are asked for, each once; the first default of a name counts. */
export function variablesOf(text: string, known: Readonly<Record<string, string>> = {}): readonly Variable[] {
  const found = new Map<string, Variable>();
  for (const [, name, proposed = ""] of text.matchAll(variable)) {
    const before = found.get(name!);
    if (!Object.hasOwn(known, name!) && (before === undefined || before.proposed === ""))
      found.set(name!, { name: name!, proposed: proposed.trim() });
  }
  return [...found.values()];
}

/** Returns the text with the values of its variables. A value is not searched for variables. */
export const fillIn = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(variable, (whole, name: string) => (Object.hasOwn(values, name) ? values[name]! : whole));
