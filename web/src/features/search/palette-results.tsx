// The messages, artifacts, files and research tasks that the service finds for the text typed into the palette.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { addressOf } from "../../api/message-address";
import { viewFile } from "../../controls/viewed-file";
import { useLocalization } from "../../messages/localization";
import { Group, Item, type ResultProps } from "./palette-item";
import { searchQuery } from "./search-query";

type Result = Schemas["SearchResult"];

/** How long the user pauses before the typed text is searched, in milliseconds. */
const pause = 250;
/** The longest query of the service, in code points. */
const longest = 160;

interface Found {
  results: readonly Result[];
  /** A query that finds something, if this one finds nothing because of a misspelled word. */
  proposed: string | null;
  failed: boolean;
}

/** Returns the messages, artifacts, files and research tasks that match a typed text, and whether the search failed. */
export function useFound(typed: string): Found {
  const [query, setQuery] = useState("");
  useEffect(() => {
    const wanted = [...typed.trim()].slice(0, longest).join("").trim();
    const timer = setTimeout(() => setQuery(wanted), wanted === "" ? 0 : pause);
    return () => clearTimeout(timer);
  }, [typed]);
  const { data, isError } = useQuery(searchQuery(query));
  if (typed.trim() === "") return { results: [], proposed: null, failed: false };
  return { results: data?.found ?? [], proposed: data?.proposed ?? null, failed: isError };
}

/** An excerpt of a text with its matches marked. The offsets of matches count code points. */
function Excerpt({ snippet }: { snippet: Result["snippet"] }) {
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

interface FoundProps extends ResultProps {
  found: readonly Result[];
}

export function Messages({ found, choose }: FoundProps) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  return (
    <Group heading={t("pages.palette.messages")} show={found.length > 0}>
      {found.map((result) => (
        <Item
          key={result.message_id}
          value={result.message_id ?? ""}
          icon="search"
          onSelect={choose(
            () =>
              void navigate({
                to: "/c/$conversation",
                params: { conversation: result.conversation_id ?? "" },
                hash: addressOf(result.message_id ?? "", result.branch_id),
              }),
          )}
        >
          <span className="flex min-w-0 grow flex-col py-1">
            <span dir="auto" className="truncate [text-align:match-parent]">
              {result.title || t("pages.untitled")}
            </span>
            <Excerpt snippet={result.snippet} />
          </span>
        </Item>
      ))}
    </Group>
  );
}

export function Artifacts({ found, choose }: FoundProps) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  return (
    <Group heading={t("artifacts.title")} show={found.length > 0}>
      {found.map(({ artifact_id, conversation_id, title, snippet }) => (
        <Item
          key={artifact_id}
          value={artifact_id ?? ""}
          icon="fileText"
          onSelect={choose(
            () =>
              void navigate({
                to: "/c/$conversation",
                params: { conversation: conversation_id ?? "" },
                search: { artifact: artifact_id ?? "" },
              }),
          )}
        >
          <span className="flex min-w-0 grow flex-col py-1">
            <span dir="auto" className="truncate [text-align:match-parent]">
              {title}
            </span>
            <Excerpt snippet={snippet} />
          </span>
        </Item>
      ))}
    </Group>
  );
}

/** Research tasks, which are shown in their conversations. */
export function Tasks({ found, choose }: FoundProps) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  return (
    <Group heading={t("pages.palette.research")} show={found.length > 0}>
      {found.map(({ task_id, conversation_id, title }) => (
        <Item
          key={task_id}
          value={task_id ?? ""}
          icon="search"
          onSelect={choose(
            () => void navigate({ to: "/c/$conversation", params: { conversation: conversation_id ?? "" } }),
          )}
        >
          <span dir="auto" className="min-w-0 grow truncate [text-align:match-parent]">
            {title}
          </span>
        </Item>
      ))}
    </Group>
  );
}

export function Files({ found, choose }: FoundProps) {
  const { t } = useLocalization();
  return (
    <Group heading={t("pages.palette.files")} show={found.length > 0}>
      {found.map(({ file_id, title, snippet, passage }) => (
        <Item
          key={file_id}
          value={file_id ?? ""}
          icon="file"
          onSelect={choose(() =>
            viewFile({ id: file_id ?? "", name: title, ...(passage === null ? {} : { cited: passage }) }),
          )}
        >
          <span className="flex min-w-0 grow flex-col py-1">
            <span dir="auto" className="truncate [text-align:match-parent]">
              {title}
            </span>
            {passage !== null && <Excerpt snippet={snippet} />}
          </span>
        </Item>
      ))}
    </Group>
  );
}
