// The projects of the account in TanStack Query's cache.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";
import { refetchInAllTabs } from "./queries";

export type Project = Schemas["Project"];

const page = (cursor: string | null, limit: number) => ({ limit, ...(cursor === null ? {} : { cursor }) });

/** The projects in a state, newest first. */
export const projectsQuery = (state: Project["state"]) =>
  infiniteQueryOptions({
    queryKey: ["projects", state],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => body(api.GET("/projects", { params: { query: { state, ...page(pageParam, 50) } } })),
    getNextPageParam: (last) => last.next_cursor,
    refetchOnWindowFocus: "always",
  });

export const projectQuery = (id: string) =>
  queryOptions({
    queryKey: ["project", id],
    queryFn: () => body(api.GET("/projects/{project_id}", { params: { path: { project_id: id } } })),
    refetchOnWindowFocus: "always",
  });

export const instructionsQuery = (id: string) =>
  queryOptions({
    queryKey: ["project", id, "instructions"],
    queryFn: () => body(api.GET("/projects/{project_id}/instructions", { params: { path: { project_id: id } } })),
  });

export const projectConversationsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["project", id, "conversations"],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) =>
      body(
        api.GET("/projects/{project_id}/conversations", {
          params: { path: { project_id: id }, query: page(pageParam, 50) },
        }),
      ),
    getNextPageParam: (last) => last.next_cursor,
    refetchOnWindowFocus: "always",
  });

/** The projects that can take a conversation. */
export const moveTargetsQuery = (conversation: string) =>
  infiniteQueryOptions({
    queryKey: ["move-targets", conversation],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) =>
      body(
        api.GET("/conversations/{conversation_id}/move-targets", {
          params: { path: { conversation_id: conversation }, query: page(pageParam, 50) },
        }),
      ),
    getNextPageParam: (last) => last.next_cursor,
    staleTime: 0,
  });

/** Refetches everything that shows a project or its conversations, in all tabs. */
export function projectChanged(): void {
  for (const key of ["projects", "project", "conversations"]) void refetchInAllTabs(key);
}

const ifMatch = (version: number) => ({ "If-Match": `"v${version}"` });

export const createProject = (name: string): Promise<Project> =>
  body(api.POST("/projects", { params: { header: {} }, body: { name } }));

export const renameProject = ({ project_id, version }: Project, name: string): Promise<Project> =>
  body(
    api.PUT("/projects/{project_id}/name", {
      params: { path: { project_id }, header: ifMatch(version) },
      body: { name },
    }),
  );

export const archiveProject = ({ project_id, version }: Project, archived: boolean): Promise<Project> =>
  body(
    api.PUT("/projects/{project_id}/archive", {
      params: { path: { project_id }, header: ifMatch(version) },
      body: { archived },
    }),
  );

/** Deletes a project. Without a token, the service refuses with 409 and returns the token and what would be deleted. */
export const deleteProject = ({ project_id, version }: Project, token?: string): Promise<unknown> =>
  api.DELETE("/projects/{project_id}", {
    params: {
      path: { project_id },
      header: { ...ifMatch(version), ...(token === undefined ? {} : { "X-Confirm": token }) },
    },
  });

export const restoreProject = ({ project_id, version }: Project): Promise<Project> =>
  body(
    api.POST("/projects/{project_id}/restore", {
      params: { path: { project_id }, header: ifMatch(version) },
      body: {},
    }),
  );

export const putInstructions = (project_id: string, content: string, version: number) =>
  body(
    api.PUT("/projects/{project_id}/instructions", {
      params: { path: { project_id }, header: ifMatch(version) },
      body: { content },
    }),
  );
