// Which tools the next messages of a conversation may use. The choice is stored on this device, by conversation.
import { create } from "zustand";

export interface ToolChoice {
  /** false: neither searches nor pages of the web. */
  web_search?: boolean;
  /** The names of the tools that may not be used. */
  off?: string[];
}

/** The choices of conversations in which something is off; the last changed one is the last. */
type Choices = Readonly<Record<string, ToolChoice>>;

const storageKey = "turnstone-tools";
/** How many conversations have a choice; beyond them, the oldest choices are dropped. */
const maxChoices = 200;

/** Parses the stored choices. Damaged ones are left out. */
export function parseChoices(kept: string | null): Choices {
  try {
    const found = Object.entries((JSON.parse(kept ?? "{}") ?? {}) as Record<string, unknown>);
    return Object.fromEntries(found.flatMap(([id, choice]) => (isChoice(choice) ? [[id, choice]] : [])));
  } catch {
    return {};
  }
}

function isChoice(value: unknown): value is ToolChoice {
  if (typeof value !== "object" || value === null) return false;
  const { web_search: web, off } = value as Partial<Record<keyof ToolChoice, unknown>>;
  return (
    (web === undefined || typeof web === "boolean") &&
    (off === undefined || (Array.isArray(off) && off.every((name) => typeof name === "string")))
  );
}

/** Returns the choices with that of one conversation. A choice with everything on is none. */
export function withChoice(
  choices: Choices,
  conversation: string,
  { web_search = true, off = [] }: ToolChoice,
): Choices {
  const others = Object.entries(choices).filter(([id]) => id !== conversation);
  const choice: ToolChoice = { ...(web_search ? {} : { web_search }), ...(off.length === 0 ? {} : { off }) };
  const all = Object.keys(choice).length === 0 ? others : [...others, [conversation, choice] as const];
  return Object.fromEntries(all.slice(-maxChoices));
}

function stored(): Choices {
  try {
    return parseChoices(localStorage.getItem(storageKey));
  } catch {
    return {}; // the storage is not available
  }
}

export const useToolChoices = create<{ byID: Choices }>(() => ({ byID: stored() }));

/** Returns the choice for the next message of a conversation; undefined: everything is on. */
export const toolsOf = (conversation: string): ToolChoice | undefined => useToolChoices.getState().byID[conversation];

export function chooseTools(conversation: string, choice: ToolChoice): void {
  const byID = withChoice(useToolChoices.getState().byID, conversation, choice);
  useToolChoices.setState({ byID });
  try {
    localStorage.setItem(storageKey, JSON.stringify(byID));
  } catch {
    // The storage is not available; the choice lasts until the page is closed.
  }
}

/** Returns a choice without some of the names of tools. */
export function withoutTools({ off = [], ...rest }: ToolChoice, names: readonly string[]): ToolChoice {
  const others = off.filter((name) => !names.includes(name));
  return { ...rest, ...(others.length === 0 ? {} : { off: others }) };
}

/** Removes tools that the service no longer has from the choice of a conversation: it refuses messages that name them. */
export function forgetTools(conversation: string, names: readonly string[]): void {
  const choice = toolsOf(conversation);
  if (choice !== undefined) chooseTools(conversation, withoutTools(choice, names));
}

/** Starts to follow the choices of other tabs. */
export function startToolChoices(): void {
  window.addEventListener("storage", ({ key, newValue }) => {
    if (key === storageKey) useToolChoices.setState({ byID: parseChoices(newValue) });
  });
}
