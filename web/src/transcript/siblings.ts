// Shows another version of a message: finds a branch that has it and makes that one the active branch, on every device.
import { api, body, type Conversation, type ConversationPage, Refusal, type Schemas } from "../api/client";
import { changed, conversationQuery, keep, queryClient } from "../api/queries";
import type { Message } from "../generated/events";

/** How many branches are looked at together. */
const together = 6;

/** Switches to the version with this index. Throws a Refusal; false when no branch shows it. */
export async function showSibling(conversation: string, message: Message, index: number): Promise<boolean> {
  const branch = await findBranch(conversation, message.parent_message_id, index);
  if (branch === null) return false;
  const page = await queryClient.ensureQueryData(conversationQuery(conversation));
  try {
    keep(await activate(page, branch));
  } catch (refusal) {
    if (!(refusal instanceof Refusal) || refusal.code !== "stale_version") throw refusal;
    // Something else of the conversation changed, as its title: that does not stand against this.
    keep(await activate(await queryClient.fetchQuery({ ...conversationQuery(conversation), staleTime: 0 }), branch));
  }
  void changed("conversation", conversation);
  return true;
}

function activate(page: ConversationPage, branch: string): Promise<Conversation> {
  const path = { conversation_id: page.conversation_id };
  return body(api.PUT("/conversations/{conversation_id}/active-branch", { params: { path, header: { "If-Match": `"v${page.version}"` } }, body: { branch_id: branch } })) as Promise<Conversation>;
}

/** The newest branch on which this version follows its parent; the newest, because that is where it was gone on with last. */
async function findBranch(conversation: string, parent: string | null, index: number): Promise<string | null> {
  const branches = likelyFirst(await allBranches(conversation), parent, index);
  for (let from = 0; from < branches.length; from += together) {
    const some = branches.slice(from, from + together);
    const found = await Promise.all(some.map((branch) => siblingOn(conversation, branch, parent)));
    const at = found.indexOf(index);
    if (at >= 0) return some[at]!.branch_id;
  }
  return null;
}

type Branch = Schemas["Branch"];

/** Branches with something on them, the newest first; before all others those that begin where the version does. */
export function likelyFirst(branches: readonly Branch[], parent: string | null, index: number): Branch[] {
  const written = branches.filter((branch) => branch.head_message_id !== null && (branch.head_message_id !== branch.base_message_id || branch.base_message_id === null));
  const newest = written.toSorted((a, b) => (a.branch_id < b.branch_id ? 1 : -1));
  const begun = written.filter((branch) => branch.base_message_id === parent).toSorted((a, b) => (a.branch_id < b.branch_id ? -1 : 1));
  const likely = begun[parent === null ? index : index - 1];
  // Branches that came from the likely one show the version too, and are newer: they are looked at in the same round.
  if (likely === undefined) return newest;
  return [...new Set([...newest.filter((branch) => branch.branch_id > likely.branch_id).slice(0, together - 1), likely, ...newest])];
}

async function allBranches(conversation: string): Promise<Branch[]> {
  const list: Branch[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: Schemas["ListBranch"] = await body(
      api.GET("/conversations/{conversation_id}/branches", { params: { path: { conversation_id: conversation }, query: { limit: 100, ...(cursor === null ? {} : { cursor }) } } }),
    );
    list.push(...page.data);
    cursor = page.next_cursor;
    if (cursor === null) return list;
  }
}

/** The index of the version that follows a parent on a branch; null when the branch does not have the parent, or ends with it. */
function siblingOn(conversation: string, { branch_id }: Branch, parent: string | null): Promise<number | null> {
  const around = parent === null ? { direction: "newer" as const, limit: 1 } : { around: parent, limit: 3 };
  return queryClient.fetchQuery({
    queryKey: ["sibling", conversation, branch_id, parent],
    // What follows a message on a branch stays as it is, once it is there.
    staleTime: ({ state }) => (state.data == null ? 0 : Infinity),
    queryFn: async () => {
      try {
        const page = await body(api.GET("/conversations/{conversation_id}/messages", { params: { path: { conversation_id: conversation }, query: { branch_id, ...around } } }));
        return page.data.find((message) => message.parent_message_id === parent)?.sibling_index ?? null;
      } catch (refusal) {
        if (refusal instanceof Refusal && refusal.status === 404) return null;
        throw refusal;
      }
    },
  });
}
