// The research tasks of a conversation. Most conversations have none, so what shows them is loaded for the first one.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { deferred } from "../../controls/deferred";
import { noteTask } from "../../turn/running-tasks";
import { tasksQuery } from "./queries";

const TaskList = deferred(() => import("./task-list").then((m) => m.TaskList), { onFailure: () => {} });

interface TasksProps {
  conversation: string;
  /** When the last message was created; null: there is none. */
  lastMessageAt: string | null;
}

export function Tasks({ conversation, lastMessageAt }: TasksProps) {
  const { data } = useQuery(tasksQuery(conversation));
  useEffect(() => {
    for (const { task_id, state } of data?.data ?? []) noteTask(task_id, conversation, state);
  }, [conversation, data]);
  const tasks = data?.data.filter(({ state }) => state !== "completed").toReversed() ?? [];
  return tasks.length === 0 ? null : <TaskList tasks={tasks} lastMessageAt={lastMessageAt} />;
}
