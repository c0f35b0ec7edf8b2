// The prompts of the account and of its projects in TanStack Query's cache, and the requests that change them.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";
import { pagedQuery } from "./paged-query";
import { refetchInAllTabs } from "./queries";

export type Prompt = Schemas["Prompt"];

/** What selects the prompts of a project; null: those that belong to the account. */
const within = (project: string | null) => (project === null ? { scope: "account" as const } : { project_id: project });

const matching = (query: string) => (query === "" ? {} : { q: query });

/** The prompts of a project or of the account by their names; the previous ones while those of another text are loading. */
export const promptsQuery = (project: string | null, query: string) => ({
  ...pagedQuery(
    ["prompts", "list", project, query],
    50,
    (page) => api.GET("/prompts", { params: { query: { ...within(project), ...matching(query), ...page } } }),
    { refetchOnMount: "always", refetchOnWindowFocus: "always" },
  ),
  placeholderData: keepPreviousData,
});

/** How many prompts of the project, and of the account, a message is offered. */
const maxPicked = 20;

/** A few prompts for a message in a project: its own first, then those of the account. */
export const pickedPromptsQuery = (project: string | null, query: string) =>
  queryOptions({
    queryKey: ["prompts", "picked", project, query],
    queryFn: async () => {
      const scopes = project === null ? [null] : [project, null];
      const lists = await Promise.all(
        scopes.map((of) =>
          body(api.GET("/prompts", { params: { query: { ...within(of), ...matching(query), limit: maxPicked } } })),
        ),
      );
      return lists.flatMap(({ data }) => data);
    },
    placeholderData: (before) => before,
  });

/** Returns the prompts of the loaded pages. One that was created or renamed between two requests may be on two pages. */
export const uniquePrompts = (pages: readonly { data: readonly Prompt[] }[]): Prompt[] => [
  ...new Map(pages.flatMap(({ data }) => data).map((one) => [one.prompt_id, one])).values(),
];

export type PromptContent = Pick<Prompt, "name" | "description" | "text">;

/** Creates a prompt of a project or of the account. A repeated request with the same key creates no second one. */
export const createPrompt = (project_id: string | null, content: PromptContent, key: string): Promise<Prompt> =>
  body(api.POST("/prompts", { params: { header: { "Idempotency-Key": key } }, body: { ...content, project_id } }));

/** Changes a prompt. It is refused with 409 if the prompt has changed since that version. */
export const changePrompt = (prompt_id: string, version: number, content: PromptContent): Promise<Prompt> =>
  body(
    api.PATCH("/prompts/{prompt_id}", {
      params: { path: { prompt_id }, header: { "If-Match": `"v${version}"` } },
      body: content,
    }),
  );

export const deletePrompt = (prompt_id: string): Promise<unknown> =>
  api.DELETE("/prompts/{prompt_id}", { params: { path: { prompt_id }, header: {} } });

/** Refetches the lists of prompts, in all tabs. */
export const promptsChanged = (): Promise<void> => refetchInAllTabs("prompts");
