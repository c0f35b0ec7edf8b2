// The files of the account in TanStack Query's cache, and the requests that change them.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";
import { pagedQuery } from "./paged-query";
import { refetchInAllTabs } from "./queries";

export type StoredFile = Schemas["File"];
export type FileKind = StoredFile["kind"];

export const fileKinds = ["document", "text", "image", "audio", "archive", "other"] as const satisfies FileKind[];
export const fileSorts = ["newest", "name", "size"] as const;
export type FileSort = (typeof fileSorts)[number];

/** The engine of a service without a malware scanner, which detects only a test file. */
const testEngine = "test-signatures";

export const isScanned = ({ scan }: StoredFile): boolean => scan.engine !== testEngine;

export interface FileFilter {
  /** A part of the name; empty: any name. */
  query: string;
  kind: FileKind | "all";
  sort: FileSort;
}

/** The files of the library that match a filter; the previous ones while those of another filter are loading. */
export const filesQuery = ({ query, kind, sort }: FileFilter) => ({
  ...pagedQuery(
    ["files", "library", query, kind, sort],
    50,
    (page) =>
      api.GET("/files", {
        params: {
          query: { sort, ...(query === "" ? {} : { q: query }), ...(kind === "all" ? {} : { kind }), ...page },
        },
      }),
    { refetchOnMount: "always", refetchOnWindowFocus: "always" },
  ),
  placeholderData: keepPreviousData,
});

/** The files of a project, newest first. */
export const projectFilesQuery = (project_id: string) =>
  pagedQuery(
    ["files", "project", project_id],
    50,
    (query) => api.GET("/projects/{project_id}/files", { params: { path: { project_id }, query } }),
    { refetchOnMount: "always", refetchOnWindowFocus: "always" },
  );

/** Returns the files of the loaded pages. A file that was added or renamed between two requests may be on two pages. */
export const uniqueFiles = (pages: readonly { data: readonly StoredFile[] }[]): StoredFile[] => [
  ...new Map(pages.flatMap(({ data }) => data).map((one) => [one.file_id, one])).values(),
];

/** How many files the picker of a message lists: all that the service returns at once. */
const maxPicked = 20;

/** A few of the newest files whose names contain a text, for a message; the previous ones while others are loading. */
export const pickerQuery = (query: string) =>
  queryOptions({
    queryKey: ["files", "picker", query],
    queryFn: () =>
      body(
        api.GET("/files/picker", { params: { query: { limit: maxPicked, ...(query === "" ? {} : { q: query }) } } }),
      ),
    placeholderData: (before) => before,
  });

/** The address from which the browser downloads a file. */
export const contentPath = ({ file_id }: Pick<StoredFile, "file_id">): string => `/files/${file_id}/content`;

/** The address of the small version of a picture that has one. */
export const thumbnailPath = ({ file_id }: StoredFile): string => `/files/${file_id}/thumbnail`;

/** The states of the files of a message, in the order of the message. */
export const statesQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ["files", "states", ...ids],
    queryFn: () => body(api.POST("/files/attachment-states", { body: { file_ids: [...ids] } })),
  });

/** What the model will get of the files of a message. */
export const preparedQuery = (conversation_id: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["files", "prepared", conversation_id, ...ids],
    queryFn: () =>
      body(
        api.POST("/conversations/{conversation_id}/attachments", {
          params: { path: { conversation_id } },
          body: { file_ids: [...ids] },
        }),
      ),
  });

/** Refetches the lists of files, in all tabs. */
export const filesChanged = (): Promise<void> => refetchInAllTabs("files");

const ifMatch = (version: number) => ({ "If-Match": `"v${version}"` });

/** Renames a file. It is refused with 409 if the file has changed since that version. */
export const renameFile = (file_id: string, version: number, filename: string): Promise<StoredFile> =>
  body(
    api.PATCH("/files/{file_id}", {
      params: { path: { file_id }, header: ifMatch(version) },
      body: { filename },
    }),
  );

/** Keeps a file in the library when the temporary chat ends that it was uploaded for. */
export const keepFile = (file_id: string): Promise<StoredFile> =>
  body(api.PATCH("/files/{file_id}", { params: { path: { file_id }, header: {} }, body: { kept: true } }));

export const deleteFile = (file_id: string): Promise<unknown> =>
  api.DELETE("/files/{file_id}", { params: { path: { file_id } } });

/** Adds a file to a project. The request can be repeated. */
export const addToProject = (file_id: string, project_id: string): Promise<StoredFile> =>
  body(api.POST("/projects/{project_id}/files", { params: { path: { project_id }, header: {} }, body: { file_id } }));

export const removeFromProject = (file_id: string, project_id: string): Promise<unknown> =>
  api.DELETE("/projects/{project_id}/files/{file_id}", { params: { path: { project_id, file_id } } });
