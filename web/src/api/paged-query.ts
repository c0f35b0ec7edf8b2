import { infiniteQueryOptions, type QueryKey } from "@tanstack/react-query";
import { body } from "./client";

/** What a request for a page contains. Without a cursor it is the first page. */
export interface PageRequest {
  limit: number;
  cursor?: string;
}

interface Options {
  refetchOnMount?: "always";
  refetchOnWindowFocus?: "always";
  staleTime?: number;
  gcTime?: number;
}

/** A list that is loaded in pages of the given size. */
export const pagedQuery = <Page extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  limit: number,
  fetch: (page: PageRequest) => Promise<{ data?: Page }>,
  options: Options = {},
) =>
  infiniteQueryOptions({
    queryKey,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => body<Page>(fetch({ limit, ...(pageParam === null ? {} : { cursor: pageParam }) })),
    getNextPageParam: (page) => page.next_cursor,
    ...options,
  });
