// The decisions of this tab on requests for approval, from the press of a button until the service's events report them.
// A decision is sent once; without a response, the same one is sent again, which the service accepts once.
import { create } from "zustand";
import { Refusal, type Schemas } from "../../api/client";
import { postSteering } from "../../api/steering";
import type { PartApproval } from "../../generated/events";

export interface Decision {
  decision: "approve_once" | "approve_for_conversation" | "approve_with_edits" | "reject";
  /** With approve_with_edits. */
  edited_input?: Record<string, unknown>;
  /** With reject; empty: none. */
  reason?: string;
}

/** How an approval was resolved. */
export interface Resolution {
  decision: NonNullable<PartApproval["decision"]>;
  reason?: string | undefined;
}

export type Sending =
  /** retry: why the last attempt failed; null: this is the first one. */
  | { state: "sending"; retry: Refusal | null }
  | { state: "accepted"; resolution: Resolution }
  /** The approval had another decision before; null: it cannot be decided any more. */
  | { state: "too_late"; resolution: Resolution | null }
  | { state: "refused"; refusal: Refusal };

/** By identifier of the approval. */
export const useDecisions = create<{ byID: Readonly<Record<string, Sending>> }>(() => ({ byID: {} }));

/** Sends a decision, unless one is being sent or was accepted. */
export async function decide(turn: string, approval: PartApproval, decision: Decision): Promise<void> {
  const id = approval.approval_id;
  const before = useDecisions.getState().byID[id];
  if (before !== undefined && before.state !== "refused") return;
  const update = (sending: Sending) => useDecisions.setState(({ byID }) => ({ byID: { ...byID, [id]: sending } }));
  update({ state: "sending", retry: null });
  const { edited_input, reason = "", ...rest } = decision;
  const refusal = await postSteering(
    {
      type: "approval",
      turn_id: turn,
      approval_id: id,
      input_digest: approval.input_digest,
      ...rest,
      ...(reason === "" ? {} : { reason }),
      // The document has no type for an object of any kind.
      ...(edited_input === undefined ? {} : { edited_input: edited_input as Record<string, never> }),
    },
    (retry) => update({ state: "sending", retry }),
  );
  if (refusal === null) update({ state: "accepted", resolution: { decision: decision.decision, reason } });
  else if (refusal.code === "approval_decided") update({ state: "too_late", resolution: resolutionOf(refusal) });
  else update({ state: "refused", refusal });
}

/** Returns the resolution of the approval that a refusal contains. */
function resolutionOf({ problem }: Refusal): Resolution | null {
  const { decision, state } = problem?.current as Schemas["Approval"];
  if (decision !== null) return { decision: decision as Resolution["decision"] };
  return state === "expired" ? { decision: "expired" } : { decision: "cancelled" };
}
