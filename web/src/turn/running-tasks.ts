// The research tasks of the account that have not ended, as far as this browser knows: those that the account's feed and the
// pages of conversations have reported. Kept over a reload.
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

const storageKey = "turnstone-running-tasks";
const maxEnded = 20;

export const useRunningTasks = create<RunningTasks>(() => ({ byID: {}, ended: [] }));

/** Notes the state of a task. */
export function noteTask(id: string, conversation: string, state: string): void {
  const { byID, ended } = useRunningTasks.getState();
  if (!isOver(state)) {
    if (byID[id] === undefined && !ended.some((one) => one.id === id)) store({ ...byID, [id]: conversation });
    return;
  }
  if (!ended.some((one) => one.id === id))
    useRunningTasks.setState({ ended: [...ended.slice(1 - maxEnded), { id, conversation, state }] });
  forget(id);
}

function forget(id: string): void {
  const { [id]: known, ...others } = useRunningTasks.getState().byID;
  if (known !== undefined) store(others);
}

function store(byID: RunningTasks["byID"]): void {
  useRunningTasks.setState({ byID });
  try {
    localStorage.setItem(storageKey, JSON.stringify(byID));
  } catch {
    // The storage is not available; the tasks are known until the page is closed.
  }
}

/** Starts with the tasks that were running when the page was last open. */
export function startRunningTasks(): void {
  let known: [string, unknown][] = [];
  try {
    known = Object.entries(JSON.parse(localStorage.getItem(storageKey) ?? "{}") as object);
  } catch {
    return; // the storage is not available
  }
  for (const [task_id] of known)
    void body(api.GET("/research-tasks/{task_id}", { params: { path: { task_id } } })).then(
      (task) => isOver(task.state) || noteTask(task_id, task.conversation_id, task.state),
      (error: unknown) => error instanceof Refusal && error.status === 404 && forget(task_id),
    );
}
