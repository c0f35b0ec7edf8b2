// The projects, messages, artifacts, files, research tasks and settings that are found for the text typed into the palette.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Fragment, useEffect, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { projectsQuery } from "../../api/projects";
import { addressOf } from "../../api/message-address";
import { maxQuery } from "../../generated/limits";
import { viewFile } from "../../controls/viewed-file";
import { useLocalization, useMessages } from "../../messages/localization";
import { searchingMessages } from "../../messages/searching";
import { sectionIDs, sections } from "../../messages/sections";
import { Group, Item, When, type ResultProps } from "./palette-item";
import { byConversation, exactFirst } from "./palette-match";
import { conversationSearchQuery, searchQuery } from "./search-query";

type Result = Schemas["SearchResult"];

/** How long the user pauses before the typed text is searched, in milliseconds. */
const pause = 250;

interface Found {
  results: readonly Result[];
  /** The text that was searched. */
  query: string;
  /** Whether more matches than these exist. */
  hasMore: boolean;
  /** A query that finds something, if this one finds nothing because of a misspelled word. */
  proposed: string | null;
  failed: boolean;
}

/** Returns the conversations, messages, artifacts, files and research tasks that match a typed text, and whether the search failed. */
export function useFound(typed: string): Found {
  const [query, setQuery] = useState("");
  useEffect(() => {
    const wanted = [...typed.trim()].slice(0, maxQuery).join("").trim();
    const timer = setTimeout(() => setQuery(wanted), wanted === "" ? 0 : pause);
    return () => clearTimeout(timer);
  }, [typed]);
  const { data, isError } = useQuery(searchQuery(query));
  if (typed.trim() === "") return { results: [], query: "", hasMore: false, proposed: null, failed: false };
  return {
    results: data?.found ?? [],
    query,
    hasMore: data?.hasMore ?? false,
    proposed: data?.proposed ?? null,
    failed: isError,
  };
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
    <span dir="auto" className="truncate text-xs text-soft text-as-parent">
      {parts}
      {characters.slice(at).join("")}
    </span>
  );
}

interface FoundProps extends ResultProps {
  found: readonly Result[];
}

interface TypedProps extends ResultProps {
  typed: string;
  matches: (title: string) => boolean;
}

/** How many projects and files are listed for a typed text. */
const maxListed = 8;

export function Projects({ typed, matches, choose }: TypedProps) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const { data } = useInfiniteQuery(projectsQuery("active"));
  const all = typed.trim() === "" ? [] : (data?.pages.flatMap((page) => page.data) ?? []);
  const found = exactFirst(
    all.filter(({ name }) => matches(name)),
    typed,
    ({ name }) => name,
  ).slice(0, maxListed);
  return (
    <Group heading={t("pages.projects")} show={found.length > 0}>
      {found.map(({ project_id, name, updated_at }) => (
        <Item
          key={project_id}
          value={project_id}
          icon="folder"
          onSelect={choose(() => void navigate({ to: "/p/$project", params: { project: project_id } }))}
        >
          <span dir="auto" className="min-w-0 grow truncate text-as-parent">
            {name}
          </span>
          <When at={updated_at} />
        </Item>
      ))}
    </Group>
  );
}

/** The sections of the settings. */
export function Settings({ typed, matches, choose }: TypedProps) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const found = sectionIDs.filter((id) => typed.trim() !== "" && matches(t(sections[id])));
  return (
    <Group heading={t("pages.settings.title")} show={found.length > 0}>
      {found.map((id) => (
        <Item
          key={id}
          value={`settings-${id}`}
          icon="settings"
          onSelect={choose(() => void navigate({ to: "/settings", hash: id }))}
        >
          {t(sections[id])}
        </Item>
      ))}
    </Group>
  );
}

/** How many messages of one conversation are listed until the others are asked for. */
const maxOfConversation = 3;

interface MessagesProps extends FoundProps {
  query: string;
  hasMore: boolean;
  /** Selects an item of the palette by its value. */
  onSelect: (value: string) => void;
}

export function Messages({ found, query, hasMore, onSelect, choose }: MessagesProps) {
  const t = useMessages(searchingMessages);
  const [opened, setOpened] = useState<{ query: string; conversation: string } | null>(null);
  return (
    <Group heading={t("pages.palette.messages")} show={found.length > 0}>
      {byConversation(found, maxOfConversation).map(({ conversation, shown, others }) =>
        opened?.query === query && opened.conversation === conversation ? (
          <AllMessages
            key={conversation}
            query={query}
            conversation={conversation}
            found={found.filter((one) => one.conversation_id === conversation)}
            choose={choose}
          />
        ) : (
          <Fragment key={conversation}>
            {shown.map((result, at) => (
              <MessageItem key={result.message_id} result={result} titled={at === 0} choose={choose} />
            ))}
            {others > 0 && (
              <Item
                value={`more-${conversation}`}
                icon="chevronDown"
                onSelect={() => {
                  setOpened({ query, conversation });
                  onSelect(shown.at(-1)?.message_id ?? "");
                }}
              >
                {hasMore ? t("search.more_unknown") : t("search.more", { count: others })}
              </Item>
            )}
          </Fragment>
        ),
      )}
    </Group>
  );
}

/** All messages of a conversation that match. Until they are loaded, those that are known. */
function AllMessages({ query, conversation, found, choose }: FoundProps & { query: string; conversation: string }) {
  const { data } = useQuery(conversationSearchQuery(query, conversation));
  const known = new Set(found.map(({ message_id }) => message_id));
  const all = [...found, ...(data?.data.filter(({ message_id }) => !known.has(message_id)) ?? [])];
  return all.map((result, at) => (
    <MessageItem key={result.message_id} result={result} titled={at === 0} choose={choose} />
  ));
}

/** titled: whether the title of the conversation is visible. Screen readers always get it. */
function MessageItem({ result, titled, choose }: ResultProps & { result: Result; titled: boolean }) {
  const t = useMessages(searchingMessages);
  const navigate = useNavigate();
  const author = result.role === null ? "" : `${t(`search.by.${result.role}`)} · `;
  return (
    <Item
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
        <span dir="auto" className={titled ? "truncate text-as-parent" : "sr-only"}>
          {result.title || t("pages.untitled")}
        </span>
        <Excerpt snippet={result.snippet} />
      </span>
      <When at={result.at} before={author} />
    </Item>
  );
}

export function Artifacts({ found, choose }: FoundProps) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  return (
    <Group heading={t("artifacts.title")} show={found.length > 0}>
      {found.map(({ artifact_id, conversation_id, title, snippet, at }) => (
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
            <span dir="auto" className="truncate text-as-parent">
              {title}
            </span>
            <Excerpt snippet={snippet} />
          </span>
          <When at={at} />
        </Item>
      ))}
    </Group>
  );
}

/** Research tasks, which are shown in their conversations. */
export function Tasks({ found, choose }: FoundProps) {
  const t = useMessages(searchingMessages);
  const navigate = useNavigate();
  return (
    <Group heading={t("pages.palette.research")} show={found.length > 0}>
      {found.map(({ task_id, conversation_id, title, at }) => (
        <Item
          key={task_id}
          value={task_id ?? ""}
          icon="search"
          onSelect={choose(
            () => void navigate({ to: "/c/$conversation", params: { conversation: conversation_id ?? "" } }),
          )}
        >
          <span dir="auto" className="min-w-0 grow truncate text-as-parent">
            {title}
          </span>
          <When at={at} />
        </Item>
      ))}
    </Group>
  );
}

export function Files({ found, typed, choose }: FoundProps & { typed: string }) {
  const t = useMessages(searchingMessages);
  return (
    <Group heading={t("pages.palette.files")} show={found.length > 0}>
      {exactFirst(found, typed, ({ title }) => title).map(({ file_id, title, snippet, passage, at }) => (
        <Item
          key={file_id}
          value={file_id ?? ""}
          icon="file"
          onSelect={choose(() =>
            viewFile({ id: file_id ?? "", name: title, ...(passage === null ? {} : { cited: passage }) }),
          )}
        >
          <span className="flex min-w-0 grow flex-col py-1">
            <span dir="auto" className="truncate text-as-parent">
              {title}
            </span>
            {passage !== null && <Excerpt snippet={snippet} />}
          </span>
          <When at={at} />
        </Item>
      ))}
    </Group>
  );
}
