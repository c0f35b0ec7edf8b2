// The research tasks that this tab follows.
import type { TaskEvent } from "./follow";
import { liveStore, type LiveView } from "./live-store";
import { foldTask, openTask, type TaskView } from "./task";

export type LiveTask = LiveView<TaskView>;

const tasks = liveStore<TaskView, TaskEvent>(foldTask);

export const useLiveTasks = tasks.use;

/** Follows a task from its first event while a component shows it: no other request returns what was found so far. */
export const watchTask = (task: string): (() => void) => tasks.watch(task, () => openTask(task));
