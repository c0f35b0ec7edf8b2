// The conversation of a new chat before the service has it. Its identifier is created here and survives a reload. Once
// its draft is on the service or its first message is sent, it is an ordinary conversation.
import { newIdentifier } from "../../api/identifier";
import type { NewConversation } from "../../api/outbox-message";
import { queryClient, sessionQuery } from "../../api/queries";

export interface NewChat extends NewConversation {
  id: string;
  /** Whether the service has it, although its page has not been opened. Only that of a project stays on its page then. */
  stored?: boolean;
}

const storageKey = (project?: string): string =>
  `turnstone-new-chat/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}${project === undefined ? "" : `/${project}`}`;

/** Returns the new chat, or that of a project. */
export function newChat(project?: string): NewChat {
  try {
    const known = sessionStorage.getItem(storageKey(project));
    if (known !== null) return JSON.parse(known) as NewChat;
  } catch {
    // The storage cannot be read; a reload then starts another new chat.
  }
  return storeNewChat({ id: newIdentifier("conv"), profile: null, ...(project === undefined ? {} : { project }) });
}

export function storeNewChat(chat: NewChat): NewChat {
  try {
    sessionStorage.setItem(storageKey(chat.project), JSON.stringify(chat));
  } catch {
    // The storage cannot be written; a reload then starts another new chat.
  }
  return chat;
}

/** Returns how the conversation of a new chat is created. */
export const creationOf = ({ id: _, stored: __, ...creation }: NewChat): NewConversation => creation;

/** Ends a new chat, so that the next one gets another identifier. */
export function endNewChat(id: string, project?: string): void {
  if (newChat(project).id === id) sessionStorage.removeItem(storageKey(project));
}
