// The conversations that this browser knows: those of the service, and those whose first message it is still sending.
import { useMemo } from "react";
import type { Conversation } from "../../api/client";
import { indexOf } from "../../api/conversation-pages";
import { useOutbox } from "../../api/outbox";
import { listedParts } from "./groups";
import { withOutbox, withoutTemporary } from "../../api/provisional";
import { useSelecting } from "./selecting";

/**
 * Returns the loaded conversations, each once, in the order of the list, in parts: the pinned ones and those of each page.
 * A part that does not change stays the same object, so that a change causes little work in a list of many pages.
 */
export function useListedParts(
  pages: readonly { data: readonly Conversation[] }[] | undefined,
): readonly (readonly Conversation[])[] {
  const messages = useOutbox(({ list }) => list);
  const leaving = useSelecting((selecting) => selecting.leaving);
  const parts = useMemo(() => {
    const ids = [...leaving].flatMap(([id, list]) => (list === "sidebar" ? [id] : []));
    return listedParts(pages ?? []).map((part) =>
      ids.some((id) => indexOf(part).has(id)) ? part.filter((one) => !ids.includes(one.conversation_id)) : part,
    );
  }, [pages, leaving]);
  return useMemo(() => withoutTemporary(withOutbox(parts, messages), messages), [parts, messages]);
}
