// The events of a turn, as the service sends them. Generated from the registry in protocol/event.go by "make generate";
// do not edit. Clients must ignore types, fields and values that they do not know: payloads change only additively.

/** A point in time: RFC 3339 in UTC with milliseconds. */
export type Timestamp = string;

export type TurnID = `turn_${string}`;

/** The fields with which every event starts. */
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

/** The state changed, or whether the turn accepts steering. Clients must not derive either from text. */
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

/** Which profile and model produce the answer, and why. It is sent again, before the first output, if another model has to answer. */
export interface TurnRouting extends Envelope<"turn.routing"> {
  profile: Profile;
  model_id: string;
  model_role: string;
  intelligence: Intelligence;
  latency_profile: string;
  reasoning_profile: string;
  completion: Completion;
  reason: string;
  /** Position among the routes of the profile, from 1, of the one that answers. Absent: the first. */
  route?: number;
}

export type PartID = `part_${string}`;

export interface Progress {
  done: number;
  total: number;
}

/** Work in progress other than the answer itself. */
export interface ActivityProgress extends Envelope<"activity.progress"> {
  part_id: PartID;
  /** For example waiting_for_model, summarising or running_tools. */
  activity: string;
  label: string;
  progress?: Progress;
}

/** A part of the answer's text starts. */
export interface AnswerStarted extends Envelope<"answer.started"> {
  part_id: PartID;
  /** Position among the parts of the message. */
  index: number;
  format: "markdown";
  /** Parts of an attempt that was cut off; they are removed from the message. */
  supersedes?: PartID[];
}

/** More text of an open text part. */
export interface AnswerDelta extends Envelope<"answer.delta"> {
  part_id: PartID;
  /** UTF-8 bytes of the part before this delta. */
  offset: number;
  delta: string;
  obfuscation?: string;
}

export type FileID = `file_${string}`;

export interface Citation {
  /** From 1, in the order of the text. */
  index: number;
  title: string;
  url?: string;
  /** What stands for the citation in the text, at each of its places. */
  marker?: string;
  /** The file, if the source is one. The fields below locate the cited part of its text. */
  file_id?: FileID;
  kind?: "page" | "sheet" | "slide" | "chapter";
  /** The number of the page, sheet, slide or chapter; absent: the whole file. */
  page?: number;
  /** The byte of the text at which the part starts. */
  offset?: number;
  /** In bytes. */
  length?: number;
}

/** The part is closed; text is complete and authoritative. */
export interface AnswerCompleted extends Envelope<"answer.completed"> {
  part_id: PartID;
  text: string;
  citations: Citation[];
  truncated?: boolean;
}

/** A code block starts. */
export interface CodeStarted extends Envelope<"code.started"> {
  part_id: PartID;
  index: number;
  language: string;
  filename?: string;
  artifact_id?: string;
  supersedes?: PartID[];
}

/** More code of an open code block. */
export interface CodeDelta extends Envelope<"code.delta"> {
  part_id: PartID;
  offset: number;
  delta: string;
}

/** The code block is closed; code is complete and authoritative. */
export interface CodeCompleted extends Envelope<"code.completed"> {
  part_id: PartID;
  code: string;
  truncated?: boolean;
}

/** A summary of the model's reasoning starts. */
export interface ReasoningStarted extends Envelope<"reasoning.started"> {
  part_id: PartID;
  index: number;
  supersedes?: PartID[];
}

/** More text of an open summary. */
export interface ReasoningDelta extends Envelope<"reasoning.delta"> {
  part_id: PartID;
  offset: number;
  delta: string;
}

/** The summary is closed; text is complete and authoritative. */
export interface ReasoningCompleted extends Envelope<"reasoning.completed"> {
  part_id: PartID;
  text: string;
  truncated?: boolean;
}

export type ToolID = `tl_${string}`;

export type ToolState = "pending" | "awaiting_approval" | "running" | "succeeded" | "failed" | "rejected" | "cancelled" | "outcome_unknown";

/** A tool call is planned; it runs only after this event is durable. */
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

/** The progress of a running tool call. */
export interface ToolProgress extends Envelope<"tool.progress"> {
  part_id: PartID;
  tool_id: ToolID;
  label?: string;
  progress?: Progress;
}

/** The state of the tool call changed. */
export interface ToolStateChanged extends Envelope<"tool.state"> {
  part_id: PartID;
  tool_id: ToolID;
  from: ToolState;
  state: ToolState;
}

export interface TextBlock {
  kind: "page" | "sheet" | "slide" | "chapter";
  /** The number of the page, sheet, slide or chapter. */
  page: number;
  /** The name of the sheet or the title of the chapter, if it has one. */
  title?: string;
  /** The byte of the text at which the block starts. */
  offset: number;
  /** In bytes. A block without text is left out. */
  length: number;
}

export interface Source {
  number: number;
  /** The file; absent for a web page. */
  file_id: FileID;
  /** The address of a web page; absent for a file. */
  url?: string;
  title: string;
  /** Of the text, in bytes. */
  size: number;
  /** The pages, sheets, slides or chapters that it has read; absent: the file has none. */
  blocks?: TextBlock[];
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
  /** What the result is; absent in events of earlier versions and for a cancelled call. */
  outcome?: "ok" | "empty" | "failed" | "denied" | "unknown";
  output?: string;
  /** Of the whole output. */
  bytes?: number;
  /** Output is the beginning of the whole output. */
  truncated?: boolean;
  /** The call did not run: this is the result of an identical earlier call of the turn. */
  repeated?: boolean;
  /** With truncated: by this name the model can read on with read_more. */
  result_id?: string;
  /** What the output shows, with the numbers by which the model can cite it. */
  sources?: Source[];
  error?: ToolError;
  duration_ms: number;
}

export type ApprovalID = `ap_${string}`;

export interface ApprovalScope {
  /** What the call acts on, for example a host or an artifact; empty: nothing in particular. */
  resource: string;
}

export interface ApprovalRequest {
  approval_id: ApprovalID;
  /** The title of the tool. */
  action: string;
  /** What the call does, in a sentence. */
  summary: string;
  risk: "low" | "medium" | "high" | "critical";
  reversibility: "reversible" | "compensable" | "irreversible";
  /** What changes if the call runs, each in a sentence. */
  effects: string[];
  scope: ApprovalScope;
  /** Why it is asked, each in a sentence. */
  reasons: string[];
  /** Parts of the input that contain data of the account that would leave the service. */
  marked?: string[];
  /** The input with which the call runs. */
  input: unknown;
  /** Of the tool, its definition, its input and the turn: sha256: and 64 hexadecimal digits. A decision names it. */
  input_digest: string;
  /** The decisions that are possible. */
  options: string[];
  expires_at: Timestamp;
}

/** A tool call waits for an approval of the user. */
export interface ApprovalRequested extends Envelope<"approval.requested"> {
  part_id: PartID;
  tool_id: ToolID;
  approval: ApprovalRequest;
}

/** The approval was decided, expired, or was cancelled with its turn. */
export interface ApprovalResolved extends Envelope<"approval.resolved"> {
  part_id: PartID;
  tool_id: ToolID;
  approval_id: ApprovalID;
  decision: "approve_once" | "approve_for_conversation" | "approve_with_edits" | "reject" | "expired" | "cancelled";
  by: "user" | "policy" | "timeout";
  /** With approve_with_edits: the input with which the call runs instead. */
  input?: unknown;
  /** The reason that the user gave for a rejection. */
  reason?: string;
}

export type SteeringID = `st_${string}`;

export type Delivery = "next_step" | "interrupt";

/** A steering input for the live turn is durable; it will be either applied or returned, exactly once. */
export interface SteeringAccepted extends Envelope<"steering.accepted"> {
  steering_id: SteeringID;
  client_steering_id: string;
  text: string;
  delivery: Delivery;
}

/** The model has started to answer in the named step, whose request contained the input. */
export interface SteeringApplied extends Envelope<"steering.applied"> {
  steering_id: SteeringID;
  /** The notice part that shows the input at its position in the message. */
  part_id: PartID;
  index: number;
  text: string;
  step: number;
}

export type FollowUpID = `fu_${string}`;

/** The input was not used; it becomes a held follow-up unless it was withdrawn. */
export interface SteeringReturned extends Envelope<"steering.returned"> {
  steering_id: SteeringID;
  reason: "withdrawn" | "cancelled" | "failed" | "limit";
  /** The held follow-up that stores the input; null when the input was withdrawn. */
  follow_up_id: FollowUpID | null;
}

export type ArtifactID = `art_${string}`;

/** An artifact was created, or has a new version. It is durable. */
export interface ArtifactUpdated extends Envelope<"artifact.updated"> {
  part_id: PartID;
  artifact_id: ArtifactID;
  version: number;
  kind: "document" | "code" | "html" | "svg" | "table" | "diagram";
  title: string;
  /** Of code. */
  language?: string;
  created_by: "model" | "user";
}

/** Information for the reader, for example that older messages were left out. */
export interface Notice extends Envelope<"notice"> {
  part_id: PartID;
  index: number;
  /** For example context_trimmed. */
  kind: string;
  text: string;
}

/** A cancel is durable; the turn will end as cancelled. A second cancel widens the scope. */
export interface TurnCancelRequested extends Envelope<"turn.cancel_requested"> {
  by: "user" | "operator" | "deletion";
  /** What happens to the queued follow-ups: turn holds them, turn_and_follow_ups cancels them. */
  scope: "turn" | "turn_and_follow_ups";
  seen_sequence: number | null;
}

/** The turn was taken over after a restart, a drain, or the loss of its node or actor, and continues. */
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
  /** For example model_unavailable, model_rate_limited, model_protocol or interrupted. */
  code: string;
  detail: string;
  retryable: boolean;
}

/** The turn has ended. This event is sent exactly once and is always the last one. */
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
  /** A branch that shows this version: where there are few branches, the newest one that has messages of its own. PUT …/active-branch with this identifier activates it. */
  branch_id: BranchID;
}

export interface PartApproval {
  approval_id: ApprovalID;
  /** The title of the tool. */
  action: string;
  /** What the call does, in a sentence. */
  summary: string;
  risk: "low" | "medium" | "high" | "critical";
  reversibility: "reversible" | "compensable" | "irreversible";
  /** What changes if the call runs, each in a sentence. */
  effects: string[];
  scope: ApprovalScope;
  /** Why it is asked, each in a sentence. */
  reasons: string[];
  /** Parts of the input that contain data of the account that would leave the service. */
  marked?: string[];
  /** The input with which the call runs. */
  input: unknown;
  /** Of the tool, its definition, its input and the turn: sha256: and 64 hexadecimal digits. A decision names it. */
  input_digest: string;
  /** The decisions that are possible. */
  options: string[];
  expires_at: Timestamp;
  /** Absent while the approval is pending. */
  decision?: "approve_once" | "approve_for_conversation" | "approve_with_edits" | "reject" | "expired" | "cancelled";
  by?: "user" | "policy" | "timeout";
  /** The reason that the user gave for a rejection. */
  reason?: string;
}

export interface Part {
  type: "text" | "reasoning_summary" | "code" | "tool" | "citation_list" | "artifact" | "notice";
  part_id: PartID;
  /** For text, reasoning_summary and notice. */
  text?: string;
  citations?: Citation[];
  /** For code, and for an artifact of code. */
  language?: string;
  /** For code. */
  filename?: string;
  /** For code. */
  code?: string;
  /** The part was cut off before its end. */
  truncated?: boolean;
  /** For tool. */
  tool_id?: ToolID;
  tool_name?: string;
  /** For tool: the kind of the tool. For artifact: its kind. For notice: steering, context_trimmed, or attachment_absent (a file that an imported conversation names but does not have). */
  kind?: string;
  title?: string;
  input?: unknown;
  state?: ToolState;
  output?: string;
  /** For tool: the files that the output shows. */
  sources?: Source[];
  error?: ToolError;
  duration_ms?: number;
  /** For tool: what the result is. */
  outcome?: "ok" | "empty" | "failed" | "denied" | "unknown";
  /** For tool: the call did not run; this is the result of an identical earlier one. */
  repeated?: boolean;
  /** For tool: the approval that the call needed. */
  approval?: PartApproval;
  /** For a notice of kind steering. */
  steering_id?: SteeringID;
  /** For artifact. */
  artifact_id?: ArtifactID;
  /** For artifact: the newest version that the answer wrote. */
  version?: number;
  /** For artifact: who wrote that version. */
  created_by?: "model" | "user";
  /** The part is still being written; never set in a finished message. */
  open?: boolean;
}

export interface MessageRouting {
  requested: "auto" | "balanced" | "deep_reasoning" | "coding";
  resolved: "auto" | "balanced" | "deep_reasoning" | "coding";
  /** A sentence in English. */
  reason: string;
}

export interface Feedback {
  rating: "up" | "down";
  reasons: ("accurate" | "complete" | "clear" | "followed_instructions" | "inaccurate" | "incomplete" | "unclear" | "ignored_instructions" | "outdated" | "unsafe" | "other")[];
  comment: string;
}

export interface Message {
  message_id: MessageID;
  conversation_id: ConversationID;
  branch_id: BranchID;
  parent_message_id: MessageID | null;
  /** Position among the alternative versions of this message, from 0. */
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
  /** How auto chose the profile of an answer; null if the user chose it. */
  routing: MessageRouting | null;
  usage: Usage | null;
  feedback: Feedback | null;
  /** Only for a streaming message: the parts include the events up to this sequence; read on with ?after= this value. */
  covers_sequence?: number;
  created_at: Timestamp;
}

/** The message so far; it replaces the events up to covers_sequence. */
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
  | ApprovalRequested
  | ApprovalResolved
  | SteeringAccepted
  | SteeringApplied
  | SteeringReturned
  | ArtifactUpdated
  | Notice
  | TurnCancelRequested
  | TurnRecovering
  | TurnFinished
  | TurnSnapshot;

/** The types of all events: an EventSource needs a listener for each. */
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
  "approval.requested",
  "approval.resolved",
  "steering.accepted",
  "steering.applied",
  "steering.returned",
  "artifact.updated",
  "notice",
  "turn.cancel_requested",
  "turn.recovering",
  "turn.finished",
  "turn.snapshot",
] as const satisfies readonly TurnEvent["type"][];
