// The context that a conversation page provides to its rows.
import { createContext, use } from "react";
import type { Scroll } from "./use-scroll";

export interface ConversationContextValue {
  /** The identifier of the conversation. */
  id: string;
  /** A turn is live, so versions can be neither created nor switched. */
  busy: boolean;
  scroll: Pick<Scroll, "hold">;
}

export const ConversationContext = createContext<ConversationContextValue>({
  id: "",
  busy: false,
  scroll: { hold: () => {} },
});

export const useConversationContext = () => use(ConversationContext);
