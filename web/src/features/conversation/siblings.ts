// Shows another version of a message: activates the branch that contains it, for all devices.
import { api, body, type Conversation, type ConversationPage, Refusal } from "../../api/client";
import { refetch, refetchInAllTabs, conversationQuery, cacheWithPending, queryClient } from "../../api/queries";

/** Activates a branch, for example that of a sibling that a message names. Throws a Refusal. */
export async function showBranch(conversation: string, branch_id: string): Promise<void> {
  const page = await queryClient.ensureQueryData(conversationQuery(conversation));
  try {
    cacheWithPending(await activate(page, branch_id));
  } catch (refusal) {
    if (!(refusal instanceof Refusal) || refusal.code !== "stale_version") throw refusal;
    // Something else of the conversation has changed, for example its title. Retry with the new version.
    cacheWithPending(
      await activate(await queryClient.fetchQuery({ ...conversationQuery(conversation), staleTime: 0 }), branch_id),
    );
  }
  void refetchInAllTabs("conversation", conversation);
  // Cached messages of that branch may name outdated siblings.
  void refetch(["messages", conversation]);
}

function activate(page: ConversationPage, branch: string): Promise<Conversation> {
  const path = { conversation_id: page.conversation_id };
  return body(
    api.PUT("/conversations/{conversation_id}/active-branch", {
      params: { path, header: { "If-Match": `"v${page.version}"` } },
      body: { branch_id: branch },
    }),
  ) as Promise<Conversation>;
}
