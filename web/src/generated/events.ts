// The events of a turn, as the service sends them. Generated from the registry in protocol/event.go by "make generate";
// not to be edited. Types, fields and values that a client does not know are to be ignored: payloads change only additively.

/** An instant: RFC 3339 in UTC with milliseconds. */
export type Timestamp = string;

export type TurnID = `turn_${string}`;

/** What every event begins with. */
export interface Envelope<T extends string> {
  protocol_version: 1;
  turn_id: TurnID;
  /** Contiguous from 1 within the turn. */
  sequence: number;
  type: T;
  at: Timestamp;
}

export type ConversationID = `conv_${string}`;

export type BranchID = `br_${string}`;

export type MessageID = `msg_${string}`;

/** The turn exists: its messages and its first transition are durable. */
export interface TurnStarted extends Envelope<"turn.started"> {
  conversation_id: ConversationID;
  branch_id: BranchID;
  user_message_id: MessageID;
  assistant_message_id: MessageID;
  /** The message before the user's; null at the start of a conversation. */
  parent_message_id: MessageID | null;
  accepting_steering: boolean;
}

export type TurnState = "queued" | "running" | "requires_action" | "recovering" | "cancelling" | "completed" | "cancelled" | "failed" | "incomplete";

/** The state or the steering window changed. Clients derive neither from text. */
export interface TurnStateChanged extends Envelope<"turn.state"> {
  state: TurnState;
  accepting_steering: boolean;
}

export type Profile = "auto" | "balanced" | "deep_reasoning" | "coding";

export interface Intelligence {
  requested: Profile;
  resolved: Profile;
}

export interface Completion {
  max_output_tokens: number;
  max_tool_rounds: number;
  deadline_s: number;
}

/** Which profile and model answer, and why. */
export interface TurnRouting extends Envelope<"turn.routing"> {
  profile: Profile;
  model_id: string;
  model_role: string;
  intelligence: Intelligence;
  latency_profile: string;
  reasoning_profile: string;
  completion: Completion;
  reason: string;
}

export type PartID = `part_${string}`;

export interface Progress {
  done: number;
  total: number;
}

/** What is being done beside the answer. */
export interface ActivityProgress extends Envelope<"activity.progress"> {
  part_id: PartID;
  /** As waiting_for_model, summarising, running_tools. */
  activity: string;
  label: string;
  progress?: Progress;
}

/** A part of the answer's text begins. */
export interface AnswerStarted extends Envelope<"answer.started"> {
  part_id: PartID;
  /** Position among the parts of the message. */
  index: number;
  format: "markdown";
  /** Parts of a cut attempt that leave the message. */
  supersedes?: PartID[];
}

/** More text of an open part. */
export interface AnswerDelta extends Envelope<"answer.delta"> {
  part_id: PartID;
  /** UTF-8 bytes of the part before this delta. */
  offset: number;
  delta: string;
  obfuscation?: string;
}

export interface Citation {
  index: number;
  title: string;
  url?: string;
}

/** The part is closed; text is whole and authoritative. */
export interface AnswerCompleted extends Envelope<"answer.completed"> {
  part_id: PartID;
  text: string;
  citations: Citation[];
  truncated?: boolean;
}

/** A block of code begins. */
export interface CodeStarted extends Envelope<"code.started"> {
  part_id: PartID;
  index: number;
  language: string;
  filename?: string;
  artifact_id?: string;
  supersedes?: PartID[];
}

/** More code of an open part. */
export interface CodeDelta extends Envelope<"code.delta"> {
  part_id: PartID;
  offset: number;
  delta: string;
}

/** The block is closed; code is whole and authoritative. */
export interface CodeCompleted extends Envelope<"code.completed"> {
  part_id: PartID;
  code: string;
  truncated?: boolean;
}

/** A summary of the model's reasoning begins. */
export interface ReasoningStarted extends Envelope<"reasoning.started"> {
  part_id: PartID;
  index: number;
  supersedes?: PartID[];
}

/** More of the summary. */
export interface ReasoningDelta extends Envelope<"reasoning.delta"> {
  part_id: PartID;
  offset: number;
  delta: string;
}

/** The summary is closed; text is whole and authoritative. */
export interface ReasoningCompleted extends Envelope<"reasoning.completed"> {
  part_id: PartID;
  text: string;
  truncated?: boolean;
}

export type ToolID = `tl_${string}`;

export type ToolState = "pending" | "awaiting_approval" | "running" | "succeeded" | "failed" | "rejected" | "cancelled" | "outcome_unknown";

/** A tool call is intended; it runs only after this was durable. */
export interface ToolStarted extends Envelope<"tool.started"> {
  part_id: PartID;
  tool_id: ToolID;
  index: number;
  tool_name: string;
  kind: "web_search" | "account_search" | "files" | "research" | "location" | "project" | "connector" | "memory" | "compute" | "artifact";
  title: string;
  input: unknown;
  state: ToolState;
  supersedes?: PartID[];
}

/** How far a running tool is. */
export interface ToolProgress extends Envelope<"tool.progress"> {
  part_id: PartID;
  tool_id: ToolID;
  label?: string;
  progress?: Progress;
}

/** The tool call moved to another state. */
export interface ToolStateChanged extends Envelope<"tool.state"> {
  part_id: PartID;
  tool_id: ToolID;
  from: ToolState;
  state: ToolState;
}

export interface ToolError {
  code: string;
  detail: string;
}

/** The tool call ended. A failed tool does not fail the turn. */
export interface ToolCompleted extends Envelope<"tool.completed"> {
  part_id: PartID;
  tool_id: ToolID;
  state: ToolState;
  output?: string;
  error?: ToolError;
  duration_ms: number;
}

export type SteeringID = `st_${string}`;

export type Delivery = "next_step" | "interrupt";

/** An input for the live turn is durable; it will end applied or returned, once. */
export interface SteeringAccepted extends Envelope<"steering.accepted"> {
  steering_id: SteeringID;
  client_steering_id: string;
  text: string;
  delivery: Delivery;
}

/** The named model step, whose request contained the input, has begun to answer. */
export interface SteeringApplied extends Envelope<"steering.applied"> {
  steering_id: SteeringID;
  /** The notice part that shows the input at its place in the message. */
  part_id: PartID;
  index: number;
  text: string;
  step: number;
}

export type FollowUpID = `fu_${string}`;

/** The input was not used; it is parked as a held follow-up unless it was withdrawn. */
export interface SteeringReturned extends Envelope<"steering.returned"> {
  steering_id: SteeringID;
  reason: "withdrawn" | "cancelled" | "failed" | "limit";
  /** Where the input is parked; null when it was withdrawn. */
  follow_up_id: FollowUpID | null;
}

/** Something the reader should know, as that older messages were left out. */
export interface Notice extends Envelope<"notice"> {
  part_id: PartID;
  index: number;
  /** As context_trimmed. */
  kind: string;
  text: string;
}

/** A cancel is durable; from here on the turn ends cancelled. A second one widens the scope. */
export interface TurnCancelRequested extends Envelope<"turn.cancel_requested"> {
  by: "user" | "operator" | "deletion";
  /** What becomes of the queue: held, or cancelled with the turn. */
  scope: "turn" | "turn_and_follow_ups";
  seen_sequence: number | null;
}

/** Another run of the service took the turn over and goes on. */
export interface TurnRecovering extends Envelope<"turn.recovering"> {
  attempt: number;
  cause: "restart" | "node_lost" | "actor_lost" | "drain";
}

export type StopReason = "end_turn" | "refusal" | "max_tokens" | "deadline" | "budget_reached" | "tool_limit" | "error" | "cancelled";

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  cached_input_tokens: number;
  /** True when the provider gave no count and the service estimated one. */
  estimated: boolean;
}

export interface TurnError {
  /** As model_unavailable, model_rate_limited, model_protocol, interrupted. */
  code: string;
  detail: string;
  retryable: boolean;
}

/** The end. Exactly once, always last. */
export interface TurnFinished extends Envelope<"turn.finished"> {
  status: "completed" | "cancelled" | "failed" | "incomplete";
  stop_reason: StopReason;
  message_id: MessageID;
  last_sequence: number;
  usage: Usage;
  error: TurnError | null;
}

export interface Sibling {
  message_id: MessageID;
  /** A branch that shows it, the newest that has messages of its own where there are few: PUT …/active-branch with this one. */
  branch_id: BranchID;
}

export interface Part {
  type: "text" | "reasoning_summary" | "code" | "tool" | "citation_list" | "artifact" | "notice";
  part_id: PartID;
  /** text, reasoning_summary, notice. */
  text?: string;
  citations?: Citation[];
  /** code. */
  language?: string;
  /** code. */
  filename?: string;
  /** code. */
  code?: string;
  /** The part was cut before its end. */
  truncated?: boolean;
  /** tool. */
  tool_id?: ToolID;
  tool_name?: string;
  /** tool: its kind. notice: steering, context_trimmed. */
  kind?: string;
  title?: string;
  input?: unknown;
  state?: ToolState;
  output?: string;
  error?: ToolError;
  duration_ms?: number;
  /** notice of kind steering. */
  steering_id?: SteeringID;
  /** More of this part is to come; never in a finished message. */
  open?: boolean;
}

export type FileID = `file_${string}`;

export interface Feedback {
  rating: "up" | "down";
  reasons: string[];
  comment: string;
}

export interface Message {
  message_id: MessageID;
  conversation_id: ConversationID;
  branch_id: BranchID;
  parent_message_id: MessageID | null;
  /** Position among the alternatives at this place, from 0. */
  sibling_index: number;
  sibling_count: number;
  /** The alternative before this one; absent for the first. */
  previous_sibling?: Sibling;
  /** The alternative after this one; absent for the last. */
  next_sibling?: Sibling;
  role: "user" | "assistant";
  status: "complete" | "streaming" | "cancelled" | "failed" | "incomplete";
  parts: Part[];
  attachments: FileID[];
  turn_id: TurnID | null;
  profile: Profile | null;
  model_id: string | null;
  usage: Usage | null;
  feedback: Feedback | null;
  /** Of a streaming message: the parts hold the events up to here; go on with ?after= it. */
  covers_sequence?: number;
  created_at: Timestamp;
}

/** The message so far, in place of the events up to covers_sequence. */
export interface TurnSnapshot extends Envelope<"turn.snapshot"> {
  covers_sequence: number;
  message: Message;
}

/** Any event that this version knows. */
export type TurnEvent =
  | TurnStarted
  | TurnStateChanged
  | TurnRouting
  | ActivityProgress
  | AnswerStarted
  | AnswerDelta
  | AnswerCompleted
  | CodeStarted
  | CodeDelta
  | CodeCompleted
  | ReasoningStarted
  | ReasoningDelta
  | ReasoningCompleted
  | ToolStarted
  | ToolProgress
  | ToolStateChanged
  | ToolCompleted
  | SteeringAccepted
  | SteeringApplied
  | SteeringReturned
  | Notice
  | TurnCancelRequested
  | TurnRecovering
  | TurnFinished
  | TurnSnapshot;

/** The type of every event: what an EventSource has to listen to. */
export const turnEventTypes = [
  "turn.started",
  "turn.state",
  "turn.routing",
  "activity.progress",
  "answer.started",
  "answer.delta",
  "answer.completed",
  "code.started",
  "code.delta",
  "code.completed",
  "reasoning.started",
  "reasoning.delta",
  "reasoning.completed",
  "tool.started",
  "tool.progress",
  "tool.state",
  "tool.completed",
  "steering.accepted",
  "steering.applied",
  "steering.returned",
  "notice",
  "turn.cancel_requested",
  "turn.recovering",
  "turn.finished",
  "turn.snapshot",
] as const satisfies readonly TurnEvent["type"][];
