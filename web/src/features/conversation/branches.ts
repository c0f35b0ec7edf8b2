// The branches of a conversation in TanStack Query's cache, and the requests that rename and copy one.
import { attempts } from "../../api/attempt";
import { api, body, Refusal, type Conversation, type Schemas } from "../../api/client";
import type { BranchingMessageKey } from "../../messages/branching";
import { pagedQuery } from "../../api/paged-query";
import { queryClient, refetchInAllTabs } from "../../api/queries";

export type Branch = Schemas["Branch"];

/** The branches of a conversation, oldest first. */
export const branchesQuery = (conversation_id: string) =>
  pagedQuery(
    ["branches", conversation_id],
    100,
    (query) => api.GET("/conversations/{conversation_id}/branches", { params: { path: { conversation_id }, query } }),
    { refetchOnMount: "always", refetchOnWindowFocus: "always" },
  );

/** Sets the name of a branch under its version; an empty name removes it. */
export async function renameBranch(conversation: string, id: string, name: string, version: number): Promise<void> {
  const renamed = await body(
    api.PATCH("/conversations/{conversation_id}/branches/{branch_id}", {
      params: { path: { conversation_id: conversation, branch_id: id }, header: { "If-Match": `"v${version}"` } },
      body: { name },
    }),
  );
  cacheBranch(conversation, renamed);
  void refetchInAllTabs("branches", conversation);
}

/** Replaces a branch in the cached list, unless the list has a later version. */
export function cacheBranch(conversation: string, changed: Branch): void {
  queryClient.setQueryData(branchesQuery(conversation).queryKey, (list) => {
    const replace = (one: Branch) =>
      one.branch_id === changed.branch_id && one.version < changed.version ? changed : one;
    return list && { ...list, pages: list.pages.map((page) => ({ ...page, data: page.data.map(replace) })) };
  });
}

/** The copy may be repeated with the same key. */
const attempt = attempts();

/** Creates a conversation with a copy of the messages up to and including a message. */
export async function copyBranch(conversation: string, message: string): Promise<Conversation> {
  const content = { message_id: message, mode: "fork" } as const;
  try {
    const copy = await attempt(JSON.stringify([conversation, content]), (key) =>
      body(
        api.POST("/conversations/{conversation_id}/branches", {
          params: { path: { conversation_id: conversation }, header: { "Idempotency-Key": key } },
          body: content,
        }),
      ),
    );
    return copy as Conversation; // the response to the other modes is a branch
  } finally {
    void refetchInAllTabs("conversations");
  }
}

/** The message that explains why a branch was not copied. */
export function copyProblemOf(error: unknown): BranchingMessageKey {
  if (!(error instanceof Refusal)) return "branching.not_copied";
  if (error.outcomeUnknown || error.code === "idempotency_in_progress") return "branching.copy_unknown";
  return error.code === "turn_in_progress" ? "branching.answering" : "branching.not_copied";
}
