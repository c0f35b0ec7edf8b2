// The states of steps and sources that are shown. The last events of a task do not change those that its end has stopped. Pure.
import type { Task, TaskSource } from "../../turn/task";

/** stopped: the task has ended, or is ending, before the step has. */
export type ShownStep = Task["plan"][number]["state"] | "stopped";

/** left: the task reads no more sources, and has not used this one. */
export type ShownSource = TaskSource["state"] | "left";

/** works: whether the task still works. */
export const shownStep = (state: Task["plan"][number]["state"], works: boolean): ShownStep =>
  !works && state === "running" ? "stopped" : state;

/** reads: whether the task still reads sources. */
export const shownSource = (state: TaskSource["state"], reads: boolean): ShownSource =>
  !reads && (state === "found" || state === "reading" || state === "read") ? "left" : state;
