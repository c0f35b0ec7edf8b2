// The usage of the account in TanStack Query's cache.
import { queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";

export type UsageGroup = Schemas["UsageGroup"];
export type TokenBudget = Schemas["TokenBudget"];
export type Grouping = "day" | "profile" | "conversation";

/** How many pages of groups are read at most. A page of conversations may have few groups, or none. */
const maxPages = 10;

/** Returns when tokens that were used up at a time are available again: the budget is for a UTC day. */
export const budgetReset = (at: number): number => (Math.floor(at / 86_400_000) + 1) * 86_400_000;

/** The sums of usage from a day (UTC) until now with the state of the budget. complete: false if there are more groups. */
export const usageQuery = (grouping: Grouping, from: string) =>
  queryOptions({
    queryKey: ["usage", grouping, from],
    queryFn: async () => {
      const groups: UsageGroup[] = [];
      for (let cursor: string | null = null, pages = 1; ; pages++) {
        const query = { group_by: grouping, from, limit: 100, ...(cursor === null ? {} : { cursor }) };
        const sums: Schemas["UsageSums"] = await body(api.GET("/usage", { params: { query } }));
        groups.push(...sums.data);
        cursor = sums.next_cursor;
        if (cursor === null || pages === maxPages) return { groups, budget: sums.budget, complete: cursor === null };
      }
    },
    refetchOnMount: "always",
    refetchOnWindowFocus: "always",
  });
