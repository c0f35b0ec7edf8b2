// The research tasks of a conversation below its messages: those that have not ended, and those that ended without a report.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { Disclosure } from "../../parts/disclosure";
import { noteTask } from "../../turn/running-tasks";
import { isOver } from "../../turn/task";
import { tasksQuery } from "./queries";
import { EndedTask, TaskCard } from "./task-card";

interface ListProps {
  conversation: string;
  /** When the last message was created; null: there is none. */
  lastMessageAt: string | null;
}

export function TaskList({ conversation, lastMessageAt }: ListProps) {
  const t = useMessages(researchMessages);
  const { data } = useQuery(tasksQuery(conversation));
  useEffect(() => {
    for (const { task_id, state } of data?.data ?? []) noteTask(task_id, conversation, state);
  }, [conversation, data]);
  const tasks = (data?.data ?? []).filter(({ state }) => state !== "completed").toReversed();
  const ended = tasks.filter(({ state }) => isOver(state));
  const isEarlier = ({ created_at }: { created_at: string }) => lastMessageAt !== null && created_at < lastMessageAt;
  const earlier = ended.filter(isEarlier);
  return (
    <>
      {earlier.length > 0 && (
        <Disclosure icon={<Icon name="research" size={16} />} label={t("research.earlier", { count: earlier.length })}>
          {earlier.map((task) => (
            <EndedTask key={task.task_id} task={task} />
          ))}
        </Disclosure>
      )}
      {ended
        .filter((task) => !isEarlier(task))
        .map((task) => (
          <EndedTask key={task.task_id} task={task} />
        ))}
      {tasks
        .filter(({ state }) => !isOver(state))
        .map((task) => (
          <TaskCard key={task.task_id} task={task} />
        ))}
    </>
  );
}
