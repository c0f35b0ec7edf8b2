// Removes the conversation of a task that was not started. A start in a new chat creates the conversation first.
import { api, type ConversationPage } from "../../api/client";
import { conversationQuery, queryClient, refetchInAllTabs } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { chooseResearch, useResearchMode } from "./mode";
import { tasksQuery } from "./queries";

/**
 * Removes a conversation whose last start was refused, unless there is something in it. isEmpty: whether nothing is in its
 * composer. leave: shows another page; called if the conversation is shown.
 */
export async function removeUnused(
  conversation_id: string,
  question: string,
  isEmpty: () => boolean,
  leave: () => void,
): Promise<void> {
  if (!isEmpty()) return;
  try {
    const [page, tasks] = await Promise.all([
      queryClient.fetchQuery({ ...conversationQuery(conversation_id), staleTime: 0 }),
      queryClient.fetchQuery({ ...tasksQuery(conversation_id), staleTime: 0 }),
    ]);
    if (!isUnused(page, question) || tasks.data.length > 0 || !isEmpty()) return;
    if (location.pathname === `/c/${conversation_id}`) {
      if (useResearchMode.getState().choices[conversation_id] !== undefined) return; // the options are shown again
      leave();
    }
    await api.DELETE("/conversations/{conversation_id}", {
      params: { path: { conversation_id }, header: { "If-Match": `"v${page.version}"` } },
    });
    chooseResearch(conversation_id, null);
    queryClient.removeQueries({ queryKey: ["conversation", conversation_id] });
    void refetchInAllTabs("conversations");
  } catch (error) {
    noticeSignOut(error); // it stays in the list
  }
}

/** The stored draft may still be the question: the composer saves its changes a moment later. */
const isUnused = ({ draft, ...page }: ConversationPage, question: string): boolean =>
  page.message_count === 0 &&
  page.live_turn_id === null &&
  page.follow_ups.length === 0 &&
  page.project_id === null &&
  page.title === "" &&
  !page.temporary && // the next new chat would be an ordinary one
  (draft.content === "" ? draft.attachments.length === 0 : draft.content.trim() === question);
