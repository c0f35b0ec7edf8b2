// The matches of a query in all messages of a branch: in the loaded ones as they are displayed, in the others as the server
// finds them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { memoized } from "../../api/memoized";
import { fold, MatchList, positionsOf } from "../../parts/find";
import { findQuery, searchedTextOf, slices } from "./find-query";
import type { Row } from "./rows";

/** How long the query has to stay the same before the server is asked, in milliseconds. */
const pause = 250;

const searchedText = memoized(searchedTextOf);

export interface Matches {
  /** The folded query. */
  query: string;
  /** In the order of the branch; of the previous query until the search of the loaded messages is complete. */
  list: MatchList;
  /** The position of each message that has a match, from 0 to 1. */
  places: ReadonlyMap<string, number>;
  /** Whether messages that are not loaded are still searched. */
  searching: boolean;
  failed: boolean;
}

interface Options {
  conversation: string;
  branch: string | undefined;
  rows: readonly Row[];
  /** Whether messages of the branch are not loaded. */
  hasOlder: boolean;
}

export function useMatches({ conversation, branch, rows, hasOlder }: Options, query: string): Matches {
  const folded = useMemo(() => fold(query.trim()).text, [query]);
  const loaded = useLoadedMatches(rows, folded);
  const asked = useSettled(folded);
  const enabled = hasOlder && branch !== undefined && asked !== "";
  const { data, isError } = useQuery({ ...findQuery(conversation, branch ?? "", asked), enabled });
  return useMemo(() => {
    // The rows that were searched, so that no match is missing while those that were just loaded are searched.
    const { rows } = loaded;
    const index = new Map(rows.map(({ key }, at) => [key, at]));
    const current = asked === loaded.query ? data : undefined;
    const older = current?.messages.filter(({ key }) => !index.has(key)) ?? [];
    /** The number of messages before the first row. */
    const before = current === undefined ? 0 : current.length - 1 - (index.get(current.head ?? "") ?? rows.length - 1);
    const length = before + rows.length;
    const places = new Map(older.map(({ key, position }) => [key, (position - 0.5) / length]));
    for (const { key } of loaded.found) places.set(key, (before + index.get(key)! + 0.5) / length);
    const list = new MatchList([...older, ...loaded.found]);
    const failed = isError && asked === folded;
    const searching = hasOlder && folded !== "" && (current === undefined || asked !== folded) && !failed;
    return { query: loaded.query, list, places, searching, failed };
  }, [loaded, data, isError, asked, folded, hasOlder]);
}

/** Returns a value once it has stayed the same for a moment. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pause);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

interface LoadedMatches {
  query: string;
  rows: readonly Row[];
  /** The rows that have matches, in order. */
  found: readonly { key: string; count: number }[];
}

/** Returns the folded query and the numbers of its matches in the rows; the previous ones until the search is complete. */
function useLoadedMatches(rows: readonly Row[], folded: string): LoadedMatches {
  const [result, setResult] = useState<LoadedMatches>({ query: "", rows: [], found: [] });
  useEffect(() => {
    let current = true;
    const search = async () => {
      const found: { key: string; count: number }[] = [];
      const react = slices();
      for (const { key, message } of folded === "" ? [] : rows) {
        if (message === null) continue;
        const count = positionsOf(folded, searchedText(message)).length;
        if (count > 0) found.push({ key, count });
        await react();
        if (!current) return;
      }
      setResult({ query: folded, rows, found });
    };
    void search();
    return () => void (current = false);
  }, [rows, folded]);
  return result;
}
