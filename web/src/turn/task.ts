// Folds the events of a research task into the view that the page shows. Pure: the same events give the same view, whether
// they arrive split, repeated or in another order.
import type { Schemas } from "../api/client";
import type { TaskEvent } from "./follow";

export type Task = Schemas["ResearchTask"];

/** A source that a task has found. */
export type TaskSource = Pick<
  Extract<TaskEvent, { type: "task.source" }>,
  "source_id" | "state" | "kind" | "title" | "url" | "reason"
>;

/** A text of the user for a task: accepted, then applied or returned. */
export interface TaskInput {
  id: string;
  text: string;
  outcome: "accepted" | "applied" | "returned";
}

/** The view of a task that was followed from its first event. Immutable: a change creates a new view. */
export interface TaskView {
  taskID: string;
  /** The sequence of the last folded event; the next one to fold is one higher. */
  last: number;
  /** Events received before the ones that precede them, by sequence. */
  outOfOrder: ReadonlyMap<number, TaskEvent>;
  state: Task["state"];
  phase: Task["phase"];
  /** When the task began to run; null: it waits. */
  runningSince: string | null;
  plan: Task["plan"];
  progress: Task["progress"];
  spent: Task["spent"];
  /** In the order in which they were found. */
  sources: readonly TaskSource[];
  inputs: readonly TaskInput[];
  /** Whether the user has asked for the report at once. */
  writesNow: boolean;
  failure: Task["failure"];
}

export function openTask(taskID: string): TaskView {
  return {
    taskID,
    last: 0,
    outOfOrder: new Map(),
    state: "queued",
    phase: "planning",
    runningSince: null,
    plan: [],
    progress: { done: 0, total: 0, sources_found: 0, sources_kept: 0, reused: 0 },
    spent: { tokens: 0, pages: 0, seconds: 0 },
    sources: [],
    inputs: [],
    writesNow: false,
    failure: null,
  };
}

/** Whether a task in a state has ended. */
export const isOver = (state: string): boolean => ["completed", "failed", "cancelled"].includes(state);

/** Folds events in any order, with any repetition. Returns the same view if there is no new event. */
export function foldTask(view: TaskView, events: readonly TaskEvent[]): TaskView {
  let next = view;
  const early = new Map(view.outOfOrder);
  for (const event of events) if (event.sequence > view.last) early.set(event.sequence, event);
  for (let due = early.get(next.last + 1); due !== undefined; due = early.get(next.last + 1)) {
    early.delete(due.sequence);
    next = apply(next, due);
  }
  return next === view && early.size === view.outOfOrder.size ? view : { ...next, outOfOrder: early };
}

/** Folds the next event. An unknown type of event advances the sequence and changes nothing else. */
function apply(view: TaskView, event: TaskEvent): TaskView {
  const next: TaskView = { ...view, last: event.sequence };
  switch (event.type) {
    case "task.state":
      next.state = event.state as Task["state"];
      if (event.state === "running") next.runningSince ??= event.at;
      break;
    case "task.phase":
      next.phase = event.phase;
      break;
    case "task.plan":
      next.plan = event.plan;
      break;
    case "task.step":
      next.plan = view.plan.map((step) => (step.step_id === event.step_id ? { ...step, state: event.state } : step));
      break;
    case "task.source":
      next.sources = withSource(view.sources, event);
      break;
    case "task.progress":
      next.progress = event.progress;
      next.spent = event.spent;
      break;
    case "task.steering":
      if (event.kind === "write_now") next.writesNow = event.outcome !== "returned";
      if (event.kind === "input") next.inputs = withInput(view.inputs, event);
      break;
    case "task.finished":
      next.state = event.state;
      next.failure = event.failure;
      break;
  }
  return next;
}

function withSource(
  list: readonly TaskSource[],
  { source_id, state, kind, title, url, reason }: TaskSource,
): readonly TaskSource[] {
  const source = { source_id, state, kind, title, url, reason };
  return list.some((one) => one.source_id === source_id)
    ? list.map((one) => (one.source_id === source_id ? source : one))
    : [...list, source];
}

function withInput(
  list: readonly TaskInput[],
  { steering_id: id, text, outcome }: Extract<TaskEvent, { type: "task.steering" }>,
): readonly TaskInput[] {
  const input = { id, text, outcome };
  return list.some((one) => one.id === id) ? list.map((one) => (one.id === id ? input : one)) : [...list, input];
}
