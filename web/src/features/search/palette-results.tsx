// The messages and files that the service finds for the text typed into the palette.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { searchQuery } from "../../api/queries";

export type Result = Schemas["SearchResult"];

/** How long the user pauses before the typed text is searched, in milliseconds. */
const pause = 250;
/** The longest query of the service, in code points. */
const longest = 160;

/** Returns the messages and files that match a typed text, and whether the search failed. */
export function useFound(typed: string): { results: readonly Result[]; failed: boolean } {
  const [query, setQuery] = useState("");
  useEffect(() => {
    const wanted = [...typed.trim()].slice(0, longest).join("").trim();
    const timer = setTimeout(() => setQuery(wanted), wanted === "" ? 0 : pause);
    return () => clearTimeout(timer);
  }, [typed]);
  const { data, isError } = useQuery(searchQuery(query));
  return { results: typed.trim() === "" ? [] : (data ?? []), failed: isError && typed.trim() !== "" };
}

/** An excerpt of a text with its matches marked. The offsets of matches count code points. */
export function Excerpt({ snippet }: { snippet: Result["snippet"] }) {
  const characters = [...snippet.text];
  const parts: ReactNode[] = [];
  let at = 0;
  for (const { start, end } of snippet.highlights) {
    parts.push(characters.slice(at, start).join(""));
    parts.push(
      <mark key={start} className="bg-transparent font-semibold text-ink">
        {characters.slice(start, end).join("")}
      </mark>,
    );
    at = end;
  }
  return (
    <span dir="auto" className="truncate text-xs text-soft [text-align:match-parent]">
      {parts}
      {characters.slice(at).join("")}
    </span>
  );
}
