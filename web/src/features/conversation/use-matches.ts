// The matches of a query in the loaded messages of a conversation.
import { useEffect, useMemo, useState } from "react";
import { memoized } from "../../api/memoized";
import type { Message } from "../../generated/events";
import { toPlainText } from "../../parts/plain";
import { fold, positionsOf, type Match } from "../../parts/find";
import { markdownOf } from "./markdown-of";
import type { Row } from "./rows";
import { textOf } from "./user-message";

/** The time in milliseconds after which the search lets the page react to input. */
const sliceTime = 12;

/** Returns the folded text of a message. */
const searchedText = memoized(
  (message: Message) => fold(message.role === "user" ? textOf(message) : toPlainText(markdownOf(message.parts))).text,
);

/** Returns the folded query and its matches, in order; the previous ones until the search is complete. */
export function useMatches(rows: readonly Row[], query: string): { query: string; list: readonly Match[] } {
  const folded = useMemo(() => fold(query.trim()).text, [query]);
  const [result, setResult] = useState<{ query: string; list: readonly Match[] }>({ query: "", list: [] });
  useEffect(() => {
    let current = true;
    const search = async () => {
      const list: Match[] = [];
      let sliceEnd = performance.now() + sliceTime;
      for (const { key, message } of folded === "" ? [] : rows) {
        if (message === null) continue;
        positionsOf(folded, searchedText(message)).forEach((_, nth) => list.push({ key, nth }));
        if (performance.now() < sliceEnd) continue;
        await new Promise((resolve) => setTimeout(resolve));
        if (!current) return;
        sliceEnd = performance.now() + sliceTime;
      }
      setResult({ query: folded, list });
    };
    void search();
    return () => void (current = false);
  }, [rows, folded]);
  return result;
}
