// Notifications of the browser about research tasks that have ended. Rendered only while the user wants them.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { api, body } from "../../api/client";
import { notify } from "../../controls/notification";
import { useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { useRunningTasks } from "../../turn/running-tasks";

export function ResearchNotifications() {
  const t = useMessages(researchMessages);
  const navigate = useNavigate();
  const ended = useRunningTasks((tasks) => tasks.ended);
  /** The tasks about which nothing is to be shown. */
  const known = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    const before = known.current ?? new Set(ended.map(({ id }) => id)); // they ended before this was rendered
    known.current = new Set(ended.map(({ id }) => id));
    for (const { id, conversation, state } of ended) {
      if (before.has(id) || state === "cancelled") continue;
      const title = t(state === "completed" ? "research.notify.completed" : "research.notify.failed");
      const open = () => void navigate({ to: "/c/$conversation", params: { conversation } });
      void body(api.GET("/research-tasks/{task_id}", { params: { path: { task_id: id } } })).then(
        ({ question }) => notify(id, title, question, conversation, open),
        () => notify(id, title, "", conversation, open),
      );
    }
  }, [ended, navigate, t]);
  return null;
}
