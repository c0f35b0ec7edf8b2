// The arguments of a tool call as one short text, for its folded line. Pure.
import type { PartView } from "../turn/fold";

type Call = Pick<PartView, "kind" | "input" | "output">;

/** The longest summary, in characters. */
const maxSummary = 120;

/** Returns what a call acts on: the title of an artifact, otherwise the values of the arguments. */
export function summaryOf(call: Call): string {
  return (call.kind === "artifact" ? titleOf(call) : valuesOf(call.input)).slice(0, maxSummary);
}

/** Returns the title that a call gives to an artifact, or that of the artifact it has read; empty if it names none. */
function titleOf({ input, output }: Call): string {
  if (input !== null && typeof input === "object" && "title" in input && typeof input.title === "string")
    return input.title.trim();
  const quoted = /^<artifact [^\n]*? title=("(?:[^"\\\n]|\\.)*")/.exec(output ?? "")?.[1];
  if (quoted === undefined) return "";
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1); // an escape that JSON does not have
  }
}

function valuesOf(input: unknown): string {
  if (input === undefined) return "";
  if (input === null || typeof input !== "object") return String(input);
  return Object.values(input)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" · ");
}
