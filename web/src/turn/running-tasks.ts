// The research tasks of the account that have not ended: those that the server lists when the page is opened, and those that the
// account's feed and the pages of conversations report.
import { create } from "zustand";
import { api, body, Refusal } from "../api/client";
import { isOver } from "./task";

/** A task that has ended while the page was open. */
export interface EndedTask {
  id: string;
  conversation: string;
  state: string;
}

interface RunningTasks {
  /** The conversation of each task, by task. */
  byID: Readonly<Record<string, string>>;
  /** The last tasks that have ended, the newest one at the end. */
  ended: readonly EndedTask[];
}

const maxEnded = 20;

export const useRunningTasks = create<RunningTasks>(() => ({ byID: {}, ended: [] }));

/** Notes the state of a task. */
export function noteTask(id: string, conversation: string, state: string): void {
  const { byID, ended } = useRunningTasks.getState();
  if (!isOver(state)) {
    if (byID[id] === undefined && !ended.some((one) => one.id === id))
      useRunningTasks.setState({ byID: { ...byID, [id]: conversation } });
    return;
  }
  if (!ended.some((one) => one.id === id))
    useRunningTasks.setState({ ended: [...ended.slice(1 - maxEnded), { id, conversation, state }] });
  forget(id);
}

function forget(id: string): void {
  const { [id]: known, ...others } = useRunningTasks.getState().byID;
  if (known !== undefined) useRunningTasks.setState({ byID: others });
}

/**
 * Asks which tasks have not ended (an account has at most 100), and how those have ended that are not among them: the feed may
 * have missed it.
 */
export async function refreshRunningTasks(): Promise<void> {
  const before = Object.keys(useRunningTasks.getState().byID);
  const open = await body(api.GET("/research-tasks", { params: { query: { state: "open", limit: 100 } } }));
  for (const task of open.data) noteTask(task.task_id, task.conversation_id, task.state);
  for (const task_id of before)
    if (!open.data.some((task) => task.task_id === task_id))
      void body(api.GET("/research-tasks/{task_id}", { params: { path: { task_id } } })).then(
        (task) => noteTask(task_id, task.conversation_id, task.state),
        (error: unknown) => error instanceof Refusal && error.status === 404 && forget(task_id),
      );
}
