// Notifications of the browser about research tasks that have ended. Rendered only while the user wants them.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { api, body } from "../../api/client";
import { notify } from "../../controls/notification";
import { useMessages } from "../../messages/localization";
import { researchMessages } from "../../messages/research";
import { useRunningTasks } from "../../turn/running-tasks";

/** current: the conversation that the page shows; null: none. */
export function ResearchNotifications({ current }: { current: string | null }) {
  const t = useMessages(researchMessages);
  const navigate = useNavigate();
  const ended = useRunningTasks((tasks) => tasks.ended);
  /** The tasks about which nothing is to be shown. */
  const known = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    const before = known.current ?? new Set(ended.map(({ id }) => id)); // they ended before this was rendered
    known.current = new Set(ended.map(({ id }) => id));
    for (const { id, conversation, state } of ended) {
      const seen = conversation === current && document.visibilityState === "visible";
      if (before.has(id) || seen || state === "cancelled") continue;
      const title = t(state === "completed" ? "research.notify.completed" : "research.notify.failed");
      const path = `/c/${conversation}`;
      const open = () => void navigate({ to: "/c/$conversation", params: { conversation } });
      void body(api.GET("/research-tasks/{task_id}", { params: { path: { task_id: id } } })).then(
        ({ question }) => notify(id, title, question, path, open),
        () => notify(id, title, "", path, open),
      );
    }
  }, [ended, current, navigate, t]);
  return null;
}
