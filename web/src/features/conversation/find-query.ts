// Searches the messages of a branch that are not loaded, on the server. Only the numbers of matches are kept.
import { queryOptions } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import { queryClient } from "../../api/queries";
import { maxQuery } from "../../generated/limits";
import { fold, positionsOf } from "../../parts/find";
import { toSearchedText } from "../../parts/plain";
import { splitFences } from "../../parts/fences";
import { markdownOf, textOf } from "./markdown-of";
import type { Message } from "../../generated/events";

/** The time in milliseconds after which a search lets the page react to input. */
const sliceTime = 12;

/** How long the matches of a query are kept, in milliseconds. */
const keptTime = 60_000;

interface Searched {
  role: Message["role"];
  parts: readonly Pick<Message["parts"][number], "type" | "text" | "code" | "language">[];
}

/** Returns the folded text in which the matches of a message are counted, loaded or not. */
export const searchedTextOf = (message: Searched): string =>
  fold(
    message.role === "user"
      ? splitFences(textOf(message))
          .map((piece) => ("text" in piece ? piece.text : piece.code))
          .join("\n")
      : toSearchedText(markdownOf(message.parts)),
  ).text;

/** Returns a function that waits until the page has reacted to input, if that is due. */
export function slices(): () => Promise<void> {
  let end = performance.now() + sliceTime;
  return async () => {
    if (performance.now() < end) return;
    await new Promise((resolve) => setTimeout(resolve));
    end = performance.now() + sliceTime;
  };
}

export interface FoundInBranch {
  /** The last message of the branch when it was searched, and its position. */
  head: string | null;
  length: number;
  messages: readonly { key: string; position: number; count: number }[];
}

/** The messages of a branch that have a text. Those that were loaded from then on are added to the branch at its end. */
export const findQuery = (conversation_id: string, branch_id: string, text: string) =>
  queryOptions({
    queryKey: ["find", conversation_id, branch_id, text],
    staleTime: Infinity,
    gcTime: keptTime,
    queryFn: async ({ signal }): Promise<FoundInBranch> => {
      const q = [...text].slice(0, maxQuery).join("");
      const messages: FoundInBranch["messages"][number][] = [];
      const react = slices();
      for (let cursor: string | null = null; ;) {
        const page: FoundPage = await find(
          conversation_id,
          { q, branch_id, limit: 100, ...(cursor && { cursor }) },
          signal,
        );
        for (const message of page.data) {
          const count = positionsOf(text, searchedTextOf(message)).length;
          if (count > 0) messages.push({ key: message.message_id, position: message.position, count });
          await react();
        }
        if (page.next_cursor === null) return { head: page.head_message_id, length: page.head_depth, messages };
        cursor = page.next_cursor;
      }
    },
  });

type FoundPage = Awaited<ReturnType<typeof find>>;

const find = (
  conversation_id: string,
  query: { q: string; branch_id: string; limit: number; cursor?: string },
  signal: AbortSignal,
) => body(api.GET("/conversations/{conversation_id}/find", { params: { path: { conversation_id }, query }, signal }));

/** Searches again after a failure. */
export const findAgain = (conversation: string): void =>
  void queryClient.refetchQueries({ queryKey: ["find", conversation], type: "active" });
