// Folds the events of a turn into the view that the page shows, as protocol/fold.go does for the stored message. Pure:
// the same events give the same view, whether they arrive split, repeated or in another order.
import type {
  Message,
  MessageID,
  Part,
  PartID,
  Progress,
  SteeringID,
  TurnError,
  TurnEvent,
  TurnFinished,
  TurnID,
  TurnRouting,
  TurnState,
} from "../generated/events";

/** A steering input: first accepted by the service, then either applied or returned. */
export interface Steering {
  id: SteeringID;
  clientID: string;
  text: string;
  state: "accepted" | "applied" | "returned";
  /** Why a returned input was returned. */
  reason?: "withdrawn" | "cancelled" | "failed" | "limit";
}

/** A part of the answer, with the data that only the live events contain. */
export interface PartView extends Part {
  /** When the part started; for an open part of a stored message, when the message started; null: not known. */
  since: string | null;
  /** The progress of a tool. */
  toolProgress?: { label: string; progress: Progress | null };
}

/** The view of a live turn. Immutable: a change creates a new view. */
export interface TurnView {
  turnID: TurnID;
  /** The sequence of the last folded event; the next one to fold is one higher. */
  last: number;
  /** Events received before the ones that precede them, by sequence. */
  outOfOrder: ReadonlyMap<number, TurnEvent>;
  state: TurnState;
  /** null: unknown, because the view starts after the events that report it; use the value of the conversation. */
  acceptingSteering: boolean | null;
  messageID: MessageID | null;
  userMessageID: MessageID | null;
  startedAt: string | null;
  routing: TurnRouting | null;
  parts: readonly PartView[];
  steering: readonly Steering[];
  /** The latest activity; null once an answer, code or tool part starts. */
  activity: { label: string; activity: string; since: string; progress: Progress | null } | null;
  cancelRequested: boolean;
  /** Whether another node is taking the turn over. */
  recovering: boolean;
  finished: TurnFinished | null;
  error: TurnError | null;
}

/** Returns a view before its first event, or after the events that a stored message covers. */
export function openTurn(turnID: TurnID, message?: Message): TurnView {
  return {
    turnID,
    last: message?.covers_sequence ?? 0,
    outOfOrder: new Map(),
    state: "running",
    acceptingSteering: null,
    messageID: message?.message_id ?? null,
    userMessageID: message?.parent_message_id ?? null,
    startedAt: message?.created_at ?? null,
    routing: null,
    parts: (message?.parts ?? []).map((part) => ({ ...part, since: part.open ? message!.created_at : null })),
    steering: [],
    activity: null,
    cancelRequested: false,
    recovering: false,
    finished: null,
    error: null,
  };
}

/** Folds events in any order, with any repetition. Returns the same view if there is no new event. */
export function foldTurn(view: TurnView, events: readonly TurnEvent[]): TurnView {
  let next = view;
  const early = new Map(view.outOfOrder);
  for (const event of events) {
    if (event.turn_id !== view.turnID) continue;
    if (event.type === "turn.snapshot") {
      if (event.covers_sequence > next.last) next = viewOfSnapshot(next, event.message, event.covers_sequence);
    } else if (event.sequence > next.last) {
      early.set(event.sequence, event);
    }
    for (let due = early.get(next.last + 1); due !== undefined; due = early.get(next.last + 1)) {
      early.delete(due.sequence);
      next = apply(next, due);
    }
  }
  for (const sequence of early.keys()) if (sequence <= next.last) early.delete(sequence);
  return next === view && early.size === view.outOfOrder.size ? view : { ...next, outOfOrder: early };
}

function viewOfSnapshot(view: TurnView, message: Message, covers: number): TurnView {
  return {
    ...openTurn(view.turnID, { ...message, covers_sequence: covers }),
    outOfOrder: view.outOfOrder,
    state: view.state,
    acceptingSteering: view.acceptingSteering,
    steering: view.steering,
    routing: view.routing,
  };
}

/** Folds the next event. An unknown type of event advances the sequence and changes nothing else. */
function apply(view: TurnView, event: TurnEvent): TurnView {
  const next: TurnView = { ...view, last: event.sequence };
  switch (event.type) {
    case "turn.started":
      next.messageID = event.assistant_message_id;
      next.userMessageID = event.user_message_id;
      next.startedAt = event.at;
      next.acceptingSteering = event.accepting_steering;
      break;
    case "turn.state":
      next.state = event.state;
      next.acceptingSteering = event.accepting_steering;
      if (event.state === "running") next.recovering = false;
      break;
    case "turn.routing":
      next.routing = event;
      break;
    case "activity.progress":
      next.activity = {
        label: event.label,
        activity: event.activity,
        since: event.at,
        progress: event.progress ?? null,
      };
      break;
    case "answer.started":
      next.parts = opened(view.parts, { type: "text", part_id: event.part_id, text: "" }, event.at, event.supersedes);
      next.activity = null;
      break;
    case "code.started":
      next.parts = opened(
        view.parts,
        {
          type: "code",
          part_id: event.part_id,
          code: "",
          language: event.language,
          ...(event.filename === undefined ? {} : { filename: event.filename }),
        },
        event.at,
        event.supersedes,
      );
      next.activity = null;
      break;
    case "reasoning.started":
      next.parts = opened(
        view.parts,
        { type: "reasoning_summary", part_id: event.part_id, text: "" },
        event.at,
        event.supersedes,
      );
      break;
    case "answer.delta":
    case "reasoning.delta":
      next.parts = changed(view.parts, event.part_id, (part) =>
        part.open ? { ...part, text: (part.text ?? "") + event.delta } : part,
      );
      break;
    case "code.delta":
      next.parts = changed(view.parts, event.part_id, (part) =>
        part.open ? { ...part, code: (part.code ?? "") + event.delta } : part,
      );
      break;
    case "answer.completed":
      next.parts = changed(view.parts, event.part_id, (part) => ({
        ...closed(part, event.truncated),
        text: event.text,
        ...(event.citations.length > 0 ? { citations: event.citations } : {}),
      }));
      break;
    case "reasoning.completed":
      next.parts = changed(view.parts, event.part_id, (part) => ({
        ...closed(part, event.truncated),
        text: event.text,
      }));
      break;
    case "code.completed":
      next.parts = changed(view.parts, event.part_id, (part) => ({
        ...closed(part, event.truncated),
        code: event.code,
      }));
      break;
    case "tool.started":
      next.parts = opened(
        view.parts,
        {
          type: "tool",
          part_id: event.part_id,
          tool_id: event.tool_id,
          tool_name: event.tool_name,
          kind: event.kind,
          title: event.title,
          input: event.input,
          state: event.state,
        },
        event.at,
        event.supersedes,
      );
      next.activity = null;
      break;
    case "tool.progress":
      next.parts = changed(view.parts, event.part_id, (part) => ({
        ...part,
        toolProgress: { label: event.label ?? "", progress: event.progress ?? null },
      }));
      break;
    case "tool.state":
      next.parts = changed(view.parts, event.part_id, (part) => ({ ...part, state: event.state }));
      break;
    case "tool.completed":
      next.parts = changed(view.parts, event.part_id, (part) => {
        const { toolProgress: _, ...rest } = closed(part);
        return {
          ...rest,
          state: event.state,
          duration_ms: event.duration_ms,
          ...(event.outcome === undefined ? {} : { outcome: event.outcome }),
          ...(event.truncated === undefined ? {} : { truncated: event.truncated }),
          ...(event.repeated === undefined ? {} : { repeated: event.repeated }),
          ...(event.output === undefined ? {} : { output: event.output }),
          ...(event.sources === undefined ? {} : { sources: event.sources }),
          ...(event.error === undefined ? {} : { error: event.error }),
        };
      });
      break;
    case "approval.requested":
      next.parts = changed(view.parts, event.part_id, (part) => ({ ...part, approval: event.approval }));
      break;
    case "approval.resolved":
      next.parts = changed(view.parts, event.part_id, (part) =>
        part.approval === undefined
          ? part
          : {
              ...part,
              ...(event.input === undefined ? {} : { input: event.input }),
              approval: {
                ...part.approval,
                decision: event.decision,
                by: event.by,
                ...(event.reason === undefined ? {} : { reason: event.reason }),
              },
            },
      );
      break;
    case "artifact.updated":
      next.parts = withArtifact(view.parts, {
        type: "artifact",
        part_id: event.part_id,
        artifact_id: event.artifact_id,
        version: event.version,
        kind: event.kind,
        title: event.title,
        created_by: event.created_by,
        since: event.at,
        ...(event.language === undefined ? {} : { language: event.language }),
      });
      break;
    case "notice":
      next.parts = [
        ...view.parts,
        { type: "notice", part_id: event.part_id, kind: event.kind, text: event.text, since: event.at },
      ];
      break;
    case "steering.accepted":
      if (view.steering.every((s) => s.id !== event.steering_id)) {
        next.steering = [
          ...view.steering,
          { id: event.steering_id, clientID: event.client_steering_id, text: event.text, state: "accepted" },
        ];
      }
      break;
    case "steering.applied":
      next.steering = settled(view.steering, event.steering_id, { state: "applied" });
      next.parts = [
        ...view.parts,
        {
          type: "notice",
          part_id: event.part_id,
          kind: "steering",
          text: event.text,
          steering_id: event.steering_id,
          since: event.at,
        },
      ];
      break;
    case "steering.returned":
      next.steering = settled(view.steering, event.steering_id, { state: "returned", reason: event.reason });
      break;
    case "turn.cancel_requested":
      next.cancelRequested = true;
      break;
    case "turn.recovering":
      next.recovering = true;
      break;
    case "turn.finished":
      next.finished = event;
      next.state = event.status;
      next.error = event.error;
      next.acceptingSteering = false;
      next.recovering = false;
      next.activity = null;
      break;
  }
  return next;
}

function opened(
  parts: readonly PartView[],
  part: Part,
  at: string,
  supersedes: readonly PartID[] | undefined,
): PartView[] {
  return [...parts.filter((p) => !supersedes?.includes(p.part_id)), { ...part, open: true, since: at }];
}

/** Sets the version of an artifact in its part, which an earlier version has added at its position. */
function withArtifact(parts: readonly PartView[], part: PartView): readonly PartView[] {
  const at = parts.findIndex((known) => known.artifact_id === part.artifact_id);
  const known = parts[at];
  return known === undefined ? [...parts, part] : parts.with(at, { ...part, part_id: known.part_id });
}

function closed(part: PartView, truncated?: boolean): PartView {
  const { open: _, ...rest } = part;
  return truncated ? { ...rest, truncated } : rest;
}

function changed(parts: readonly PartView[], id: PartID, change: (part: PartView) => PartView): readonly PartView[] {
  const at = parts.findLastIndex((part) => part.part_id === id);
  const part = parts[at];
  return part === undefined ? parts : parts.with(at, change(part));
}

function settled(list: readonly Steering[], id: SteeringID, change: Partial<Steering>): Steering[] {
  return list.map((steering) => (steering.id === id ? { ...steering, ...change } : steering));
}

const terminal: readonly TurnState[] = ["completed", "cancelled", "failed", "incomplete"];

/** Whether the state is terminal. */
export function hasEnded(state: TurnState): boolean {
  return terminal.includes(state);
}

/** Whether a tool call waits for the user's approval. The state is not enough: a view of a stored message starts without it. */
export function awaitsApproval({ state, parts }: TurnView): boolean {
  return (
    state === "requires_action" ||
    parts.some((part) => part.state === "awaiting_approval" && part.approval?.decision === undefined)
  );
}

/** Whether the turn waits for tool calls, or for approvals of them. */
export function runsTools({ parts }: TurnView): boolean {
  return parts.some(({ state }) => state === "pending" || state === "awaiting_approval" || state === "running");
}
