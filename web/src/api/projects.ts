// The projects of the account in TanStack Query's cache.
import { queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";
import { pagedQuery } from "./paged-query";
import { refetchInAllTabs } from "./queries";

export type Project = Schemas["Project"];

/** The projects in a state, newest first. */
export const projectsQuery = (state: Project["state"]) =>
  pagedQuery(["projects", state], 50, (page) => api.GET("/projects", { params: { query: { state, ...page } } }), {
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

export const projectConversationsQuery = (project_id: string) =>
  pagedQuery(
    ["project", project_id, "conversations"],
    50,
    (query) => api.GET("/projects/{project_id}/conversations", { params: { path: { project_id }, query } }),
    { refetchOnWindowFocus: "always" },
  );

/** The projects that can take a conversation. */
export const moveTargetsQuery = (conversation_id: string) =>
  pagedQuery(
    ["move-targets", conversation_id],
    50,
    (query) =>
      api.GET("/conversations/{conversation_id}/move-targets", { params: { path: { conversation_id }, query } }),
    { staleTime: 0 },
  );

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
