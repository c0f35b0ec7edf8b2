// The research tasks of a conversation below its messages: those that have not ended, and those that ended without a report.
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { Disclosure } from "../../parts/disclosure";
import { isOver, type Task } from "../../turn/task";
import { EndedTask, TaskCard } from "./task-card";

interface ListProps {
  /** The oldest one first. */
  tasks: readonly Task[];
  /** When the last message was created; null: there is none. */
  lastMessageAt: string | null;
}

export function TaskList({ tasks, lastMessageAt }: ListProps) {
  const t = useMessages(researchMessages);
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
