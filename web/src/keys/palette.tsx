// The palette: leads to a conversation, or does something, by a few typed letters.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useMemo, useState, type ReactNode } from "react";
import { conversationsQuery } from "../api/queries";
import { Icon, type IconName } from "../controls/icon";
import { change } from "../rooms/settings-store";
import { useSignOut } from "../rooms/sign-out";
import { loaded } from "../sidebar/groups";
import { useSpeech } from "../words/speech";
import { act, keysOf } from "./keys";

export function Palette({ onClose }: { onClose: () => void }) {
  const { say, language } = useSpeech();
  const client = useQueryClient();
  const conversations = useMemo(() => loaded(client.getQueryData(conversationsQuery.queryKey)?.pages ?? []), [client]);
  const navigate = useNavigate();
  const signOut = useSignOut();
  // Radix knows the way back to a button of its own only.
  const [before] = useState(() => document.activeElement);
  const goBack = (event: Event) => {
    event.preventDefault();
    if (document.activeElement === document.body && before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const then = (run: () => void) => () => {
    onClose();
    run();
  };
  return (
    <Dialog.Root open onOpenChange={(open) => open || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Dialog.Content aria-describedby={undefined} onCloseAutoFocus={goBack} className="fixed inset-x-0 top-[min(12dvh,8rem)] z-50 mx-auto w-[min(calc(100vw-2rem),36rem)] overflow-hidden rounded-lg border border-line bg-raised shadow-float outline-none">
          <Dialog.Title className="sr-only">{say("rooms.palette.title")}</Dialog.Title>
          <Command label={say("rooms.palette.title")} loop vimBindings={false}>
            <div className="flex items-center gap-3 border-b border-line px-4">
              <Icon name="search" />
              <Command.Input placeholder={say("rooms.palette.hint")} className="min-h-13 min-w-0 grow bg-transparent text-base outline-none placeholder:text-faint" />
            </div>
            <Command.List label={say("rooms.palette.results")} className="max-h-[min(60dvh,24rem)] overflow-y-auto overscroll-contain p-2">
              <Command.Empty className="px-3 py-6 text-center text-sm text-soft">{say("rooms.palette.none")}</Command.Empty>
              <Group heading={say("rooms.palette.actions")}>
                <Item icon="add" keys={keysOf("new")} onSelect={then(() => void navigate({ to: "/" }))}>
                  {say("rooms.new")}
                </Item>
                <Item icon="panel" keys={keysOf("sidebar")} onSelect={then(() => act("sidebar"))}>
                  {say("rooms.keys.sidebar")}
                </Item>
                <Item icon="copy" keys={keysOf("code")} onSelect={then(() => act("code"))}>
                  {say("rooms.keys.code")}
                </Item>
                <Item icon="settings" onSelect={then(() => void navigate({ to: "/settings" }))}>
                  {say("rooms.settings.title")}
                </Item>
                <Item icon="keyboard" keys={keysOf("shortcuts")} onSelect={then(() => act("shortcuts"))}>
                  {say("rooms.keys.title")}
                </Item>
                <Item icon="leave" onSelect={then(signOut)}>
                  {say("rooms.sign_out")}
                </Item>
              </Group>
              {conversations.length > 0 && (
                <Group heading={say("rooms.sidebar")}>
                  {conversations.map((one) => (
                    <Item key={one.conversation_id} value={one.conversation_id} keywords={[one.title || say("rooms.untitled")]} onSelect={then(() => void navigate({ to: "/c/$conversation", params: { conversation: one.conversation_id } }))}>
                      <span className="flex min-w-0 grow">
                        <span dir="auto" className="truncate">
                          {one.title || say("rooms.untitled")}
                        </span>
                      </span>
                    </Item>
                  ))}
                </Group>
              )}
              <Group heading={say("rooms.settings.look")}>
                {(["system", "light", "dark"] as const).map((theme) => (
                  <Item key={theme} icon="moon" onSelect={then(() => void change({ theme }, language))}>
                    {say("rooms.palette.theme", { theme: say(`rooms.theme.${theme}`) })}
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
    <Command.Group heading={heading} className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-faint">
      {children}
    </Command.Group>
  );
}

interface ItemProps {
  icon?: IconName;
  keys?: string;
  /** What tells it from others, where words do not. */
  value?: string;
  keywords?: string[];
  onSelect: () => void;
  children: ReactNode;
}

function Item({ icon, keys, children, ...rest }: ItemProps) {
  return (
    <Command.Item className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm data-[selected=true]:bg-hover pointer-coarse:min-h-11" {...rest}>
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
