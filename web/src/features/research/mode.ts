// What the next send of a composer starts: a research task with these choices, or a turn. Kept over a reload of this tab.
import { create } from "zustand";
import type { Schemas } from "../../api/client";
import type { Refusal } from "../../api/problem";

export type Depth = Schemas["ResearchTask"]["depth"];
export type Place = Schemas["ResearchTask"]["sources"][number];
export type Amounts = Schemas["ResearchAmounts"];

export interface ResearchChoice {
  depth: Depth;
  places: readonly Place[];
  /** The amounts that differ from those of the depth; NaN: what was typed is no amount. */
  budget: Partial<Amounts>;
  /** The last request whose outcome is not known: a repetition of it has the same key. */
  unfinished?: { request: string; key: string } | undefined;
  /** The question of the last start, if the service has refused it. */
  refused?: string | undefined;
}

/** The request of this page. */
export interface Starting {
  sending: boolean;
  /** Why the last attempt failed that is repeated; null: no failure. */
  retry: Refusal | null;
  /** Why no task was started; null: no failure. */
  refusal: Refusal | null;
}

export const idle: Starting = { sending: false, retry: null, refusal: null };

export interface ResearchMode {
  choices: Readonly<Record<string, ResearchChoice>>;
  starting: Readonly<Record<string, Starting>>;
}

const storageKey = "turnstone-research";

function stored(): ResearchMode["choices"] {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") as ResearchMode["choices"];
  } catch {
    return {}; // the storage is not available
  }
}

/** By conversation. A conversation without a choice starts turns. */
export const useResearchMode = create<ResearchMode>(() => ({ choices: stored(), starting: {} }));

/** Sets what the next send of a conversation starts; null: a turn. */
export function chooseResearch(conversation: string, choice: ResearchChoice | null): void {
  const { [conversation]: _, ...others } = useResearchMode.getState().choices;
  const choices = choice === null ? others : { ...others, [conversation]: choice };
  useResearchMode.setState({ choices });
  setStarting(conversation, idle);
  try {
    sessionStorage.setItem(
      storageKey,
      JSON.stringify(choices, (_, value: unknown) => (Number.isNaN(value) ? undefined : value)),
    );
  } catch {
    // The storage is not available; the choice lasts until the page is closed.
  }
}

export function setStarting(conversation: string, change: Partial<Starting>): void {
  useResearchMode.setState(({ starting }) => ({
    starting: { ...starting, [conversation]: { ...(starting[conversation] ?? idle), ...change } },
  }));
}

/** Switches research on or off for the next send of a conversation. */
export function toggleResearch(conversation: string): void {
  const on = useResearchMode.getState().choices[conversation] !== undefined;
  chooseResearch(conversation, on ? null : { depth: "standard", places: ["web"], budget: {} });
}
