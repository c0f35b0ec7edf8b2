// The command palette: finds a conversation or an action by typed text.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useMemo, useState, type ReactNode } from "react";
import { conversationsQuery } from "../api/queries";
import { Icon, type IconName } from "../controls/icon";
import { change } from "./settings-store";
import { useSignOut } from "../sidebar/sign-out";
import { uniqueConversations } from "../sidebar/groups";
import { useLocalization } from "../messages/localization";
import { requestAction, keysOf } from "../keys/keys";

export function Palette({ onClose }: { onClose: () => void }) {
  const { t, language } = useLocalization();
  const client = useQueryClient();
  const conversations = useMemo(
    () => uniqueConversations(client.getQueryData(conversationsQuery.queryKey)?.pages ?? []),
    [client],
  );
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
          <Command label={t("pages.palette.title")} loop vimBindings={false}>
            <div className="flex items-center gap-3 border-b border-line px-4">
              <Icon name="search" />
              <Command.Input
                placeholder={t("pages.palette.hint")}
                className="min-h-13 min-w-0 grow bg-transparent text-base outline-none placeholder:text-faint"
              />
            </div>
            <Command.List
              label={t("pages.palette.results")}
              className="max-h-[min(60dvh,24rem)] overflow-y-auto overscroll-contain p-2"
            >
              <Command.Empty className="px-3 py-6 text-center text-sm text-soft">
                {t("pages.palette.none")}
              </Command.Empty>
              <Group heading={t("pages.palette.actions")}>
                <Item icon="add" keys={keysOf("new")} onSelect={then(() => void navigate({ to: "/" }))}>
                  {t("pages.new")}
                </Item>
                <Item icon="panel" keys={keysOf("sidebar")} onSelect={then(() => requestAction("sidebar"))}>
                  {t("pages.keys.sidebar")}
                </Item>
                <Item icon="copy" keys={keysOf("code")} onSelect={then(() => requestAction("code"))}>
                  {t("pages.keys.code")}
                </Item>
                <Item icon="settings" onSelect={then(() => void navigate({ to: "/settings" }))}>
                  {t("pages.settings.title")}
                </Item>
                <Item icon="keyboard" keys={keysOf("shortcuts")} onSelect={then(() => requestAction("shortcuts"))}>
                  {t("pages.keys.title")}
                </Item>
                <Item icon="leave" onSelect={then(signOut)}>
                  {t("pages.sign_out")}
                </Item>
              </Group>
              {conversations.length > 0 && (
                <Group heading={t("pages.sidebar")}>
                  {conversations.map((one) => (
                    <Item
                      key={one.conversation_id}
                      value={one.conversation_id}
                      keywords={[one.title || t("pages.untitled")]}
                      onSelect={then(
                        () => void navigate({ to: "/c/$conversation", params: { conversation: one.conversation_id } }),
                      )}
                    >
                      <span className="flex min-w-0 grow">
                        <span dir="auto" className="truncate">
                          {one.title || t("pages.untitled")}
                        </span>
                      </span>
                    </Item>
                  ))}
                </Group>
              )}
              <Group heading={t("pages.settings.appearance")}>
                {(["system", "light", "dark"] as const).map((theme) => (
                  <Item key={theme} icon="moon" onSelect={then(() => void change({ theme }, language))}>
                    {t("pages.palette.theme", { theme: t(`pages.theme.${theme}`) })}
                  </Item>
                ))}
              </Group>
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Group({ heading, children }: { heading: string; children: ReactNode }) {
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
  icon?: IconName;
  keys?: string;
  /** The unique value of the item, if its text is not unique. */
  value?: string;
  keywords?: string[];
  onSelect: () => void;
  children: ReactNode;
}

function Item({ icon, keys, children, ...rest }: ItemProps) {
  return (
    <Command.Item
      className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm data-[selected=true]:bg-hover pointer-coarse:min-h-11"
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} size={16} />}
      {children}
      {keys !== undefined && (
        <kbd dir="ltr" className="ms-auto ps-4 font-sans text-xs text-faint">
          {keys}
        </kbd>
      )}
    </Command.Item>
  );
}
