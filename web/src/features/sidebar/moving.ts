// The request to move conversations into another project.
import { create } from "zustand";
import { api, body, type Conversation } from "../../api/client";
import { currentOf } from "../../api/current-conversation";

/** The conversations that the user moves; empty: none. */
export const useMoving = create<{ conversations: readonly Conversation[] }>(() => ({ conversations: [] }));

/** Moves a conversation into a project; null: out of its project. Also if something else of it has changed. */
export const putProject = (conversation: Conversation, project: string | null): Promise<Conversation> =>
  put(conversation, project).catch((refusal: unknown) => put(currentOf(refusal), project));

function put(conversation: Conversation, project: string | null): Promise<Conversation> {
  return body(
    api.PUT("/conversations/{conversation_id}/project", {
      params: {
        path: { conversation_id: conversation.conversation_id },
        header: { "If-Match": `"v${conversation.version}"` },
      },
      body: { project_id: project },
    }),
  );
}
