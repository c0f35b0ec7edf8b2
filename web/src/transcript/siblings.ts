// Shows another version of a message: makes the branch that has it the active one, on every device.
import { api, body, type Conversation, type ConversationPage, Refusal } from "../api/client";
import { again, changed, conversationQuery, keep, queryClient } from "../api/queries";
import type { Message } from "../generated/events";

type Sibling = NonNullable<Message["previous_sibling"]>;

/** Switches to a version that a message names. Throws a Refusal. */
export async function showSibling(conversation: string, { branch_id }: Sibling): Promise<void> {
  const page = await queryClient.ensureQueryData(conversationQuery(conversation));
  try {
    keep(await activate(page, branch_id));
  } catch (refusal) {
    if (!(refusal instanceof Refusal) || refusal.code !== "stale_version") throw refusal;
    // Something else of the conversation changed, as its title: that does not stand against this.
    keep(await activate(await queryClient.fetchQuery({ ...conversationQuery(conversation), staleTime: 0 }), branch_id));
  }
  void changed("conversation", conversation);
  // What was read of that branch before may name versions that are not the newest any more.
  void again(["messages", conversation]);
}

function activate(page: ConversationPage, branch: string): Promise<Conversation> {
  const path = { conversation_id: page.conversation_id };
  return body(api.PUT("/conversations/{conversation_id}/active-branch", { params: { path, header: { "If-Match": `"v${page.version}"` } }, body: { branch_id: branch } })) as Promise<Conversation>;
}
