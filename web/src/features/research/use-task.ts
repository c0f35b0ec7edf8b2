// The state of a research task that has not ended, and the requests that change what it does.
import { useEffect, useRef, useState } from "react";
import { api, body, type Schemas } from "../../api/client";
import { Refusal } from "../../api/problem";
import { refetchInAllTabs } from "../../api/queries";
import { untilAnswered } from "../../api/until-answered";
import { isOver, type Task, type TaskInput, type TaskSource } from "../../turn/task";
import { useLiveTasks, watchTask } from "../../turn/tasks";
import { cacheTask } from "./queries";

export interface CurrentTask extends Pick<Task, "state" | "phase" | "plan" | "progress" | "spent" | "failure"> {
  sources: readonly TaskSource[];
  inputs: readonly TaskInput[];
  writesNow: boolean;
  /** When it began to run; null: it waits, or that is not known yet. */
  runningSince: string | null;
  /** Whether the connection to its events is lost. */
  isLost: boolean;
}

/** Follows a task, and loads what its end has changed. */
export function useTask(task: Task): CurrentTask {
  const { task_id, conversation_id } = task;
  const live = useLiveTasks(({ byID }) => byID[task_id]);
  useEffect(() => watchTask(task_id), [task_id]);
  const view = live?.view;
  // Until the earlier events have arrived, the loaded task is newer.
  const current = view !== undefined && view.last >= task.last_sequence ? view : task;
  const over = view !== undefined && isOver(view.state);
  useEffect(() => {
    if (!over) return;
    for (const kind of ["research", "conversation", "messages"]) void refetchInAllTabs(kind, conversation_id);
    void refetchInAllTabs("conversations");
  }, [over, conversation_id]);
  const { state, phase, plan, progress, spent, failure } = current;
  return {
    state: task.state === "cancelling" && !isOver(state) ? "cancelling" : state,
    phase,
    plan,
    progress,
    spent,
    failure,
    sources: view?.sources ?? [],
    inputs: view?.inputs ?? [],
    writesNow: view?.writesNow ?? false,
    runningSince: view?.runningSince ?? null,
    isLost: live?.connection === "waiting" || live?.connection === "unreachable",
  };
}

export type Command = Omit<Schemas["TaskSteeringRequest"], "client_steering_id"> | { type: "cancel" };

/** The last request of this page for a task. */
export interface Sent {
  type: Command["type"];
  state: "sending" | "accepted" | "refused";
  /** Why the last attempt failed; null: no failure. */
  refusal: Refusal | null;
}

/** Returns the last request for a task, and the function that sends one; it returns whether the service has accepted it. */
export function useCommands({ task_id, conversation_id }: Task): [Sent | null, (command: Command) => Promise<boolean>] {
  const [sent, setSent] = useState<Sent | null>(null);
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => void (shown.current = false);
  }, []);
  const send = async (command: Command) => {
    const { type } = command;
    const update = (next: Sent) => shown.current && setSent(next);
    update({ type, state: "sending", refusal: null });
    const retry = (refusal: Refusal) => update({ type, state: "sending", refusal });
    const params = { path: { task_id } };
    // One name for all attempts: the service accepts the command once.
    const client_steering_id = crypto.randomUUID();
    try {
      if (command.type === "cancel")
        cacheTask(await untilAnswered(() => body(api.POST("/research-tasks/{task_id}/cancel", { params })), retry));
      else
        await untilAnswered(
          () =>
            api.POST("/research-tasks/{task_id}/steering", {
              params,
              body: { ...(command as Omit<Schemas["TaskSteeringRequest"], "client_steering_id">), client_steering_id },
            }),
          retry,
        );
      update({ type, state: "accepted", refusal: null });
      return true;
    } catch (refusal) {
      void refetchInAllTabs("research", conversation_id); // it may have ended
      update({ type, state: "refused", refusal: refusal as Refusal });
      return false;
    }
  };
  return [sent, send];
}
