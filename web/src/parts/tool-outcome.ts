// The words for how a tool call ended. Pure.
import type { MessageKey } from "../messages/catalog";
import type { PartView } from "../turn/fold";

type Call = Pick<PartView, "state" | "outcome" | "truncated" | "repeated" | "approval">;

/** Returns what is special about the end of a call, each in a few words; nothing for a call that gave a whole result. */
export function outcomeWords({ state, outcome, truncated, repeated, approval }: Call): MessageKey[] {
  const words: MessageKey[] = [];
  if (state === "rejected")
    words.push(approval?.decision === "expired" ? "transcript.tool.expired" : "transcript.tool.rejected");
  else if (state === "outcome_unknown" || outcome === "unknown") words.push("transcript.tool.outcome_unknown");
  else if (state === "failed") words.push("transcript.tool.failed");
  else if (state === "cancelled") words.push("transcript.tool.cancelled");
  else if (state === "succeeded" && outcome === "empty") words.push("transcript.tool.empty");
  if (state === "succeeded" && truncated === true) words.push("transcript.tool.truncated");
  if (repeated === true) words.push("transcript.tool.repeated");
  return words;
}

/** Returns the text about the error of a call. The detail of a rejected one is for the model. */
export function errorText(
  { detail }: Pick<NonNullable<PartView["error"]>, "detail">,
  approval: Pick<NonNullable<PartView["approval"]>, "decision"> | undefined,
  t: (key: MessageKey) => string,
): string {
  if (approval?.decision === "reject") return t("transcript.tool.rejected.detail");
  return detail === "" ? t("transcript.tool.failed") : detail;
}
