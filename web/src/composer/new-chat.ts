// The conversation that a new chat will be. Its identifier is made here, before the service knows of it, and a reload of
// the page goes on with the same one until the service has something of it: then it is a conversation like the others.
import { newIdentifier } from "../api/identifier";
import type { Profile } from "../api/outbox";
import { queryClient, sessionQuery } from "../api/queries";

export interface NewChat {
  id: string;
  profile: Profile | null;
}

const place = (): string => `turnstone-new-chat/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}`;

export function newChat(): NewChat {
  try {
    const known = sessionStorage.getItem(place());
    if (known !== null) return JSON.parse(known) as NewChat;
  } catch {
    // A store that cannot be read: the chat is new after a reload.
  }
  return rememberNewChat({ id: newIdentifier("conv"), profile: null });
}

export function rememberNewChat(chat: NewChat): NewChat {
  try {
    sessionStorage.setItem(place(), JSON.stringify(chat));
  } catch {
    // As above.
  }
  return chat;
}

/** The next new chat is another one. */
export function endNewChat(id: string): void {
  if (newChat().id === id) sessionStorage.removeItem(place());
}
