// The context that a conversation page provides to its rows.
import { createContext, use } from "react";
import type { Scroll } from "./use-scroll";

export interface ConversationContextValue {
  /** The identifier of the conversation. */
  id: string;
  /** A turn is live, so versions can be neither created nor switched. */
  busy: boolean;
  scroll: Pick<Scroll, "hold">;
  /** Called when a row has handled the request to edit it, so that the request applies only once. */
  editHandled(): void;
}

export const ConversationContext = createContext<ConversationContextValue>({
  id: "",
  busy: false,
  scroll: { hold: () => {} },
  editHandled: () => {},
});

export const useConversationContext = () => use(ConversationContext);
