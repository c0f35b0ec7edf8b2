// The command palette: finds a conversation or an action by typed text.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useMemo, useState, type ReactNode } from "react";
import type { Conversation } from "../../api/client";
import { conversationsQuery } from "../../api/queries";
import { viewFile } from "../../controls/viewed-file";
import { change } from "../../api/settings-store";
import { Icon, type IconName } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { requestAction, keysOf } from "../../keys/keys";
import { useLocalization, type Localization } from "../../messages/localization";
import { useBranching } from "../conversation";
import { archive, confirmDeletion, editTitle, restore, setPinned, useListedParts, useSignOut } from "../sidebar";
import { useKnownConversation } from "../../api/known-conversation";
import { isStored } from "../../api/provisional";
import { useSharing } from "../sharing";
import { addressOf } from "../../api/message-address";
import { matcher, mostRecent } from "./palette-match";
import { Excerpt, useFound } from "./palette-results";

/** How many conversations are listed for a typed text. More would be slow to draw, and another word finds the others. */
const maxListed = 50;
/** In how many of the loaded conversations a typed text is searched. With more, each key would take too long. */
const maxSearched = 5_000;
/** How many are listed before a text is typed, so that the actions below them are visible without scrolling. */
const maxRecent = 5;

export function Palette({ onClose }: { onClose: () => void }) {
  const { t, language } = useLocalization();
  const [typed, setTyped] = useState("");
  const matches = useMemo(() => matcher(typed), [typed]);
  const titleOf = (one: Conversation) => one.title || t("pages.untitled");
  const parts = useListedParts(useInfiniteQuery(conversationsQuery).data?.pages);
  const recent = useMemo(() => mostRecent(parts.flat(), maxSearched), [parts]);
  const found = recent.filter((one) => matches(titleOf(one))).slice(0, typed.trim() === "" ? maxRecent : maxListed);
  const { results, failed } = useFound(typed);
  const messages = results.filter(({ kind }) => kind === "message");
  const files = results.filter(({ kind }) => kind === "file");
  const current = useKnownConversation(useParams({ strict: false }).conversation ?? null);
  const navigate = useNavigate();
  const signOut = useSignOut();
  // Radix returns the focus only to a trigger of its own, and the palette has none.
  const [before] = useState(() => document.activeElement);
  const goBack = (event: Event) => {
    event.preventDefault();
    if (document.activeElement === document.body && before instanceof HTMLElement)
      before.focus({ preventScroll: true });
  };
  const then = (run: () => void) => () => {
    onClose();
    run();
  };
  const groups: readonly { heading: string; items: readonly Entry[] }[] = [
    {
      heading: t("pages.palette.conversation"),
      items:
        current === undefined || !isStored(current)
          ? []
          : [
              {
                label: t("pages.rename.do"),
                icon: "edit",
                // After the dialog has closed: it keeps the focus inside itself until then.
                run: () => requestAnimationFrame(() => editTitle(current.conversation_id, "head")),
              },
              { label: t("pages.palette.copy_link"), icon: "link", run: () => copyLink(current, t) },
              {
                label: t("pages.branches.do"),
                icon: "route",
                run: () => requestAnimationFrame(() => useBranching.setState({ conversation: current })),
              },
              ...placements(current, t),
              { label: t("pages.delete.do"), icon: "trash", run: () => confirmDeletion(current) },
            ],
    },
    {
      heading: t("pages.palette.actions"),
      items: [
        { label: t("pages.new"), icon: "add", keys: keysOf("new"), run: () => requestAction("new") },
        { label: t("pages.keys.sidebar"), icon: "panel", keys: keysOf("sidebar"), run: () => requestAction("sidebar") },
        { label: t("pages.keys.code"), icon: "copy", keys: keysOf("code"), run: () => requestAction("code") },
        { label: t("library.title"), icon: "file", run: () => void navigate({ to: "/library" }) },
        { label: t("pages.settings.title"), icon: "settings", run: () => void navigate({ to: "/settings" }) },
        {
          label: t("pages.keys.title"),
          icon: "keyboard",
          keys: keysOf("shortcuts"),
          run: () => requestAction("shortcuts"),
        },
        { label: t("pages.sign_out"), icon: "leave", run: signOut },
      ],
    },
    {
      heading: t("pages.settings.appearance"),
      items: (["system", "light", "dark"] as const).map((theme) => ({
        label: t("pages.palette.theme", { theme: t(`pages.theme.${theme}`) }),
        icon: "moon",
        run: () => void change({ theme }, language),
      })),
    },
  ];
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
          <Command label={t("pages.palette.title")} loop vimBindings={false} shouldFilter={false}>
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
              <Group heading={t("pages.sidebar")} show={found.length > 0}>
                {found.map((one) => (
                  <Item
                    key={one.conversation_id}
                    value={one.conversation_id}
                    icon="chat"
                    onSelect={then(
                      () => void navigate({ to: "/c/$conversation", params: { conversation: one.conversation_id } }),
                    )}
                  >
                    <span className="flex min-w-0 grow">
                      <span dir="auto" className="truncate">
                        {titleOf(one)}
                      </span>
                    </span>
                    {one.conversation_id === current?.conversation_id && (
                      <span className="shrink-0 text-xs text-faint">{t("pages.palette.current")}</span>
                    )}
                  </Item>
                ))}
              </Group>
              <Group heading={t("pages.palette.messages")} show={messages.length > 0}>
                {messages.map((result) => (
                  <Item
                    key={result.message_id}
                    value={result.message_id ?? ""}
                    icon="search"
                    onSelect={then(
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
              <Group heading={t("pages.palette.files")} show={files.length > 0}>
                {files.map(({ file_id, title, snippet, passage }) => (
                  <Item
                    key={file_id}
                    value={file_id ?? ""}
                    icon="file"
                    onSelect={then(() =>
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
              {failed && (
                <p role="status" className="px-3 py-2 text-sm text-soft">
                  {t("pages.palette.search_failed")}
                </p>
              )}
              {groups.map(({ heading, items }) => {
                const shown = items.filter(({ label }) => matches(label));
                return (
                  <Group key={heading} heading={heading} show={shown.length > 0}>
                    {shown.map(({ label, icon, keys, run }) => (
                      <Item key={label} value={label} icon={icon} keys={keys} onSelect={then(run)}>
                        {label}
                      </Item>
                    ))}
                  </Group>
                );
              })}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface Entry {
  label: string;
  icon: IconName;
  keys?: string;
  run: () => void;
}

/** The entries that share, pin and archive a conversation, or reverse that. A temporary conversation has none. */
function placements(conversation: Conversation, t: Localization["t"]): readonly Entry[] {
  if (conversation.temporary) return [];
  const share: Entry = {
    label: t("pages.share.do"),
    icon: "share",
    run: () => requestAnimationFrame(() => useSharing.setState({ conversation })),
  };
  if (conversation.archived_at !== null)
    return [share, { label: t("pages.archive.restore"), icon: "undo", run: () => void restore(conversation, t) }];
  const pinned = conversation.pinned_at !== null;
  return [
    share,
    {
      label: t(pinned ? "pages.pin.remove" : "pages.pin.do"),
      icon: pinned ? "unpin" : "pin",
      run: () => void setPinned(conversation, !pinned, t),
    },
    { label: t("pages.archive.do"), icon: "archive", run: () => void archive(conversation, t) },
  ];
}

function copyLink(conversation: Conversation, t: Localization["t"]): void {
  navigator.clipboard.writeText(`${location.origin}/c/${conversation.conversation_id}`).then(
    () => toast(t("pages.palette.link_copied"), { stays: 2_500 }),
    () => toast(t("pages.keys.code_refused"), { kind: "problem" }),
  );
}

function Group({ heading, show, children }: { heading: string; show: boolean; children: ReactNode }) {
  if (!show) return null;
  return (
    <Command.Group
      heading={heading}
      className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-faint"
    >
      {children}
    </Command.Group>
  );
}

interface ItemProps {
  icon: IconName;
  keys?: string | undefined;
  /** The unique value of the item: texts need not be unique. */
  value: string;
  onSelect: () => void;
  children: ReactNode;
}

function Item({ icon, keys, children, ...rest }: ItemProps) {
  return (
    <Command.Item
      className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm data-[selected=true]:bg-hover pointer-coarse:min-h-11"
      {...rest}
    >
      <Icon name={icon} size={16} />
      {children}
      {keys !== undefined && (
        <kbd dir="ltr" className="ms-auto ps-4 font-sans text-xs text-faint">
          {keys}
        </kbd>
      )}
    </Command.Item>
  );
}
