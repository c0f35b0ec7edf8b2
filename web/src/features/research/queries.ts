// Research tasks in TanStack Query's cache, and the requests that change them.
import { queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "../../api/client";
import { queryClient, refetchInAllTabs } from "../../api/queries";
import type { Task } from "../../turn/task";

export type KeptSource = Schemas["ResearchKeptSource"];

/** The newest tasks of a conversation, newest first. The account feed reports changes of their states. */
export const tasksQuery = (conversation_id: string) =>
  queryOptions({
    queryKey: ["research", conversation_id],
    queryFn: () => tasks(conversation_id, {}),
  });

const tasks = (conversation_id: string, query: { report?: string }) =>
  body(
    api.GET("/conversations/{conversation_id}/research-tasks", {
      params: { path: { conversation_id }, query: { limit: 100, ...query } },
    }),
  );

/** The task that has written a report, by the identifier of its message or of its artifact; null: none has. */
export const reportQuery = (conversation: string, report: string) =>
  queryOptions({
    queryKey: ["research-report", report],
    queryFn: async () => (await tasks(conversation, { report })).data[0] ?? null,
    staleTime: Infinity, // a report has one task, which has ended
  });

/** The sources of which a task keeps excerpts: those that the report cites by their number, then the others. */
export const sourcesQuery = (task_id: string) =>
  queryOptions({
    queryKey: ["research-sources", task_id],
    queryFn: async () => {
      const all: KeptSource[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page: Schemas["ListResearchKeptSource"] = await body(
          api.GET("/research-tasks/{task_id}/sources", {
            params: { path: { task_id }, query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } },
          }),
        );
        all.push(...page.data);
        cursor = page.next_cursor;
      }
      return all.sort((a, b) => (a.number ?? Infinity) - (b.number ?? Infinity));
    },
    staleTime: Infinity, // of a report, which does not change
  });

/** Writes the state of a task that a response contains into the cache. */
export function cacheTask(task: Task): void {
  queryClient.setQueryData(tasksQuery(task.conversation_id).queryKey, (list) => {
    if (list === undefined) return list;
    const known = list.data.find(({ task_id }) => task_id === task.task_id);
    if (known === undefined) return { ...list, data: [task, ...list.data] };
    if (known.version > task.version) return list;
    return { ...list, data: list.data.map((one) => (one === known ? task : one)) };
  });
  void refetchInAllTabs("research", task.conversation_id);
}
