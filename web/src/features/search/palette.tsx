// The command palette: finds a conversation, a message, a file or an action by typed text.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useCloseOnBack } from "../../controls/close-on-back";
import { useMemo, useState } from "react";
import type { Conversation, Schemas } from "../../api/client";
import { useKnownConversation } from "../../api/known-conversation";
import { conversationsQuery } from "../../api/queries";
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { searchingMessages } from "../../messages/searching";
import { useListedParts } from "../sidebar";
import { useActions } from "./palette-actions";
import { Group, Item, When, type ResultProps } from "./palette-item";
import { exactFirst, matcher, mostRecent } from "./palette-match";
import { Artifacts, Files, Messages, Projects, Settings, Tasks, useFound } from "./palette-results";

/** How many conversations are listed for a typed text. More would be slow to draw, and another word finds the others. */
const maxListed = 50;
/** In how many of the loaded conversations a typed text is searched. With more, each key would take too long. */
const maxSearched = 5_000;
/** How many are listed before a text is typed, so that the actions below them are visible without scrolling. */
const maxRecent = 5;

export function Palette({ onClose }: { onClose: () => void }) {
  const t = useMessages(searchingMessages);
  const [typed, setTyped] = useState("");
  const [selected, setSelected] = useState("");
  // Radix returns the focus only to a trigger of its own, and the palette has none.
  const [before] = useState(() => document.activeElement);
  const goBack = (event: Event) => {
    event.preventDefault();
    if (document.activeElement === document.body && before instanceof HTMLElement)
      before.focus({ preventScroll: true });
  };
  const choose = (run: () => void) => () => {
    onClose();
    run();
  };
  useCloseOnBack(onClose);
  return (
    <Dialog.Root open onOpenChange={(open) => open || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-overlay" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={goBack}
          className="fixed inset-x-0 top-[min(12dvh,8rem)] z-50 mx-auto w-[min(calc(100vw-2rem),36rem)] overflow-hidden rounded-lg border border-line bg-raised shadow-float outline-none"
        >
          <Dialog.Title className="sr-only">{t("pages.palette.title")}</Dialog.Title>
          <Command
            label={t("pages.palette.title")}
            loop
            vimBindings={false}
            shouldFilter={false}
            value={selected}
            onValueChange={setSelected}
          >
            <div className="flex items-center gap-3 border-b border-line px-4">
              <Icon name="search" />
              <Command.Input
                value={typed}
                onValueChange={setTyped}
                placeholder={t("pages.palette.hint")}
                className="min-h-13 min-w-0 grow bg-transparent text-base outline-none placeholder:text-faint"
              />
            </div>
            <Command.List
              label={t("pages.palette.results")}
              className="max-h-[min(64dvh,32rem)] overflow-y-auto overscroll-contain p-2"
            >
              <Command.Empty className="px-3 py-6 text-center text-sm text-soft">
                {t("pages.palette.none")}
              </Command.Empty>
              <Results typed={typed} onType={setTyped} onSelect={setSelected} choose={choose} />
            </Command.List>
            <FilterHint />
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

const filters = ["from:me", "kind:file", 'in:"…"', "after:2026-01", "before:2026"];

/** Names the filters that a typed text may have. They are the same in every language. */
function FilterHint() {
  const t = useMessages(searchingMessages);
  return (
    <p className="flex flex-wrap gap-x-2.5 gap-y-1 border-t border-line px-4 py-2 text-xs text-soft [@media(max-height:30rem)]:hidden">
      {t("search.filters")}
      {filters.map((filter) => (
        <code key={filter} dir="ltr">
          {filter}
        </code>
      ))}
    </p>
  );
}

interface ResultsProps extends ResultProps {
  typed: string;
  onType: (text: string) => void;
  /** Selects an item by its value. */
  onSelect: (value: string) => void;
}

function Results({ typed, onType, onSelect, choose }: ResultsProps) {
  const t = useMessages(searchingMessages);
  const matches = useMemo(() => matcher(typed), [typed]);
  const current = useKnownConversation(useParams({ strict: false }).conversation ?? null);
  const actions = useActions(current);
  const { results, query, hasMore, proposed, failed } = useFound(typed);
  return (
    <>
      {proposed !== null && (
        <Item value="did-you-mean" icon="search" onSelect={() => onType(proposed)}>
          <span dir="auto">{t("search.did_you_mean", { query: proposed })}</span>
        </Item>
      )}
      <Projects typed={typed} matches={matches} choose={choose} />
      <Conversations
        typed={typed}
        found={results}
        matches={matches}
        most={typed.trim() === "" ? maxRecent : maxListed}
        current={current?.conversation_id}
        choose={choose}
      />
      <Messages
        found={results.filter(({ kind }) => kind === "message")}
        query={query}
        hasMore={hasMore}
        onSelect={onSelect}
        choose={choose}
      />
      <Files found={results.filter(({ kind }) => kind === "file")} typed={typed} choose={choose} />
      <Artifacts found={results.filter(({ kind }) => kind === "artifact")} choose={choose} />
      <Tasks found={results.filter(({ kind }) => kind === "task")} choose={choose} />
      {failed && (
        <p role="status" className="px-3 py-2 text-sm text-soft">
          {t("pages.palette.search_failed")}
        </p>
      )}
      <Settings typed={typed} matches={matches} choose={choose} />
      {actions.map(({ heading, items }) => {
        const shown = items.filter(({ label }) => matches(label));
        return (
          <Group key={heading} heading={heading} show={shown.length > 0}>
            {shown.map(({ label, icon, keys, run }) => (
              <Item key={label} value={label} icon={icon} keys={keys} onSelect={choose(run)}>
                {label}
              </Item>
            ))}
          </Group>
        );
      })}
    </>
  );
}

interface ConversationsProps extends ResultProps {
  typed: string;
  /** What the service has found, which may be conversations that are not loaded. */
  found: readonly Schemas["SearchResult"][];
  matches: (title: string) => boolean;
  most: number;
  /** The identifier of the open conversation; undefined: none. */
  current: string | undefined;
}

function Conversations({ typed, found, matches, most, current, choose }: ConversationsProps) {
  const t = useMessages(searchingMessages);
  const navigate = useNavigate();
  const titleOf = (one: Conversation) => one.title || t("pages.untitled");
  const parts = useListedParts(useInfiniteQuery(conversationsQuery).data?.pages);
  const recent = useMemo(() => mostRecent(parts.flat(), maxSearched), [parts]);
  const loaded = recent
    .filter((one) => matches(titleOf(one)))
    .map((one) => ({ id: one.conversation_id, title: titleOf(one), at: one.last_activity_at }));
  const known = new Set(recent.map((one) => one.conversation_id));
  const others = found.flatMap(({ kind, conversation_id: id, title, at }) =>
    kind === "conversation" && id !== null && !known.has(id) ? [{ id, title: title || t("pages.untitled"), at }] : [],
  );
  const all = [...loaded, ...others];
  const listed = (typed.trim() === "" ? all : exactFirst(all, typed, ({ title }) => title)).slice(0, most);
  return (
    <Group heading={t("pages.sidebar")} show={listed.length > 0}>
      {listed.map(({ id, title, at }) => (
        <Item
          key={id}
          value={id}
          icon="chat"
          onSelect={choose(() => void navigate({ to: "/c/$conversation", params: { conversation: id } }))}
        >
          <span className="flex min-w-0 grow">
            <span dir="auto" className="truncate">
              {title}
            </span>
          </span>
          {id === current && <span className="shrink-0 text-xs text-faint">{t("pages.palette.current")}</span>}
          <When at={at} />
        </Item>
      ))}
    </Group>
  );
}
