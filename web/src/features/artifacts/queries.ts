// The artifacts of a conversation in TanStack Query's cache, and the requests that change them.
import { queryOptions } from "@tanstack/react-query";
import { api, body, Refusal, type Schemas } from "../../api/client";
import { queryClient, refetchInAllTabs } from "../../api/queries";

export type Artifact = Schemas["Artifact"];
export type ArtifactVersion = Schemas["ArtifactVersion"];
export type ArtifactDiff = Schemas["ArtifactDiff"];

interface Page<T> {
  data: T[];
  next_cursor: string | null;
}

/** Fetches all pages of a list that has at most a few hundred items. */
async function all<T>(fetch: (query: { limit: number; cursor?: string }) => Promise<{ data?: Page<T> }>): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Page<T> = await body(fetch({ limit: 100, ...(cursor === undefined ? {} : { cursor }) }));
    items.push(...page.data);
    cursor = page.next_cursor;
  }
  return items;
}

/** The artifacts of a conversation, newest first. The account feed reports changes. */
export const artifactsQuery = (conversation_id: string) =>
  queryOptions({
    queryKey: ["artifacts", conversation_id],
    queryFn: () =>
      all<Artifact>((query) =>
        api.GET("/conversations/{conversation_id}/artifacts", { params: { path: { conversation_id }, query } }),
      ),
  });

/** The versions of an artifact, newest first. */
export const versionsQuery = (artifact_id: string) =>
  queryOptions({
    queryKey: ["artifact", artifact_id, "versions"],
    queryFn: () =>
      all<ArtifactVersion>((query) =>
        api.GET("/artifacts/{artifact_id}/versions", { params: { path: { artifact_id }, query } }),
      ),
  });

/** The content of a version, which never changes. */
export const contentQuery = (artifact_id: string, version: number) =>
  queryOptions({
    queryKey: ["artifact-content", artifact_id, version],
    queryFn: () =>
      body(
        api.GET("/artifacts/{artifact_id}/content", {
          params: { path: { artifact_id }, query: { version } },
          parseAs: "text",
        }),
      ),
    staleTime: Infinity,
  });

/** The content of a version if it was loaded. */
export const cachedContent = (artifact: string, version: number): string | undefined =>
  queryClient.getQueryData(contentQuery(artifact, version).queryKey);

/** What differs between two versions, which never changes. */
export const diffQuery = (artifact_id: string, from: number, to: number) =>
  queryOptions({
    queryKey: ["artifact-diff", artifact_id, from, to],
    queryFn: () =>
      body(api.GET("/artifacts/{artifact_id}/diff", { params: { path: { artifact_id }, query: { from, to } } })),
    staleTime: Infinity,
  });

/** The address of a version as a file. A table is a file for spreadsheets. */
export function downloadPath(
  { artifact_id, kind }: Artifact,
  version: number,
  format = kind === "table" ? "csv" : "",
): string {
  return `/artifacts/${artifact_id}/content?version=${version}${format === "" ? "" : `&format=${format}`}`;
}

const based = (artifact_id: string, base: number) => ({
  path: { artifact_id },
  header: { "If-Match": `"v${base}"` },
});

/** Stores a content as a new version, based on the version that the user has seen. */
export const saveContent = (artifact: Artifact, base: number, content: string): Promise<Artifact> =>
  changed(api.PUT("/artifacts/{artifact_id}", { params: based(artifact.artifact_id, base), body: { content } }));

/** Stores an older version as a new one, based on the current version that the user has seen. */
export const restoreVersion = (artifact: Artifact, version: number): Promise<Artifact> =>
  changed(
    api.POST("/artifacts/{artifact_id}/restore", {
      params: based(artifact.artifact_id, artifact.version),
      body: { version },
    }),
  );

/** Caches the artifact of a response, or of a refusal because the artifact has a newer version, which is thrown. */
async function changed(response: Promise<{ data?: Artifact }>): Promise<Artifact> {
  try {
    const artifact = await body(response);
    cacheArtifact(artifact);
    return artifact;
  } catch (error) {
    if (error instanceof Refusal && error.code === "stale_version")
      cacheArtifact(error.problem?.current as unknown as Artifact);
    throw error;
  }
}

function cacheArtifact(artifact: Artifact): void {
  queryClient.setQueryData(artifactsQuery(artifact.conversation_id).queryKey, (list) =>
    list?.map((one) => (one.artifact_id === artifact.artifact_id && one.version < artifact.version ? artifact : one)),
  );
  void refetchInAllTabs("artifacts", artifact.conversation_id);
  void refetchInAllTabs("artifact", artifact.artifact_id);
}
