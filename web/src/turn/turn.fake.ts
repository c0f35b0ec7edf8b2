// Random turns for tests: any mixture of parts, with the events in the order of the service.
import type { PartID, TurnEvent } from "../generated/events";

/** Returns a random generator of numbers below a bound, deterministic for each seed. */
export function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export const tokens = ["calm ", "tide ", "**stone** ", "mist\n\n", "`reef` ", "海 ", "جزر ", "🐦 "];

/** Returns the events of a random whole turn. */
export function randomTurn(next: (below: number) => number, id = "turn_01h2xcejqtf2nbrexx3vqjhp41"): TurnEvent[] {
  const events: TurnEvent[] = [];
  const add = (type: TurnEvent["type"], payload: object) =>
    events.push({
      protocol_version: 1,
      turn_id: id,
      sequence: events.length + 1,
      type,
      at: "2026-03-01T12:30:15.250Z",
      ...payload,
    } as unknown as TurnEvent);
  add("turn.started", {
    conversation_id: "conv_1",
    branch_id: "br_1",
    user_message_id: "msg_1",
    assistant_message_id: "msg_2",
    parent_message_id: null,
    accepting_steering: true,
  });
  add("turn.state", { state: "running", accepting_steering: true });
  let cut: PartID[] = [];
  for (let part = 0; part <= next(6); part++) {
    const part_id = `part_${part}` as PartID;
    const kind = (["answer", "code", "reasoning", "tool", "notice", "steering", "recovering", "artifact"] as const)[
      next(8)
    ]!;
    const supersedes = cut.length > 0 ? { supersedes: cut } : {};
    if (kind === "notice")
      add("notice", { part_id, index: part, kind: "context_trimmed", text: "Older messages were left out." });
    else if (kind === "artifact")
      add("artifact.updated", {
        part_id,
        artifact_id: `art_${next(2)}`,
        version: part + 1,
        kind: "document",
        title: "Tides",
        created_by: "model",
      });
    else if (kind === "steering") {
      add("steering.accepted", {
        steering_id: `st_${part}`,
        client_steering_id: `${part}`,
        text: "shorter",
        delivery: "next_step",
      });
      if (next(2) === 0)
        add("steering.applied", { steering_id: `st_${part}`, part_id, index: part, text: "shorter", step: 1 });
      else add("steering.returned", { steering_id: `st_${part}`, reason: "cancelled", follow_up_id: null });
    } else if (kind === "tool") {
      add("tool.started", {
        part_id,
        tool_id: `tl_${part}`,
        index: part,
        tool_name: "calculate",
        kind: "compute",
        title: "Calculate",
        input: { expression: "6*7" },
        state: "pending",
        ...supersedes,
      });
      if (next(2) === 0) {
        const approval_id = `ap_${part}`;
        add("tool.state", { part_id, tool_id: `tl_${part}`, from: "pending", state: "awaiting_approval" });
        add("approval.requested", { part_id, tool_id: `tl_${part}`, approval: { approval_id, action: "Calculate" } });
        add("turn.state", { state: "requires_action", accepting_steering: true });
        const decision = next(2) === 0 ? { decision: "approve_once" } : { decision: "approve_with_edits", input: {} };
        add("approval.resolved", { part_id, tool_id: `tl_${part}`, approval_id, by: "user", ...decision });
        add("turn.state", { state: "running", accepting_steering: true });
      }
      add("tool.state", { part_id, tool_id: `tl_${part}`, from: "pending", state: "running" });
      add("tool.progress", { part_id, tool_id: `tl_${part}`, label: "half", progress: { done: 1, total: 2 } });
      add("tool.completed", { part_id, tool_id: `tl_${part}`, state: "succeeded", output: "42", duration_ms: 3 });
      cut = [];
    } else if (kind === "recovering") {
      add("turn.recovering", { attempt: 2, cause: "node_lost" });
      add("turn.state", { state: "running", accepting_steering: true });
    } else {
      let text = "";
      add(`${kind}.started`, { part_id, index: part, format: "markdown", language: "go", ...supersedes });
      cut = [];
      for (let delta = 0; delta < next(20); delta++) {
        const word = tokens[next(tokens.length)]!;
        add(`${kind}.delta`, { part_id, offset: new TextEncoder().encode(text).length, delta: word });
        text += word;
      }
      if (next(5) === 0) cut = [part_id];
      else add(`${kind}.completed`, kind === "code" ? { part_id, code: text } : { part_id, text, citations: [] });
    }
  }
  if (cut.length > 0) {
    add("answer.started", { part_id: "part_last", index: 9, format: "markdown", supersedes: cut });
    add("answer.completed", { part_id: "part_last", text: "again", citations: [] });
  }
  add("turn.finished", {
    status: "completed",
    stop_reason: "end_turn",
    message_id: "msg_2",
    last_sequence: events.length + 1,
    usage: { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_input_tokens: 0, estimated: true },
    error: null,
  });
  return events;
}
