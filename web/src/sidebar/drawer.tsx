// The sidebar in front of the room, where there is no space beside it.
import { Dialog } from "radix-ui";
import { useSpeech } from "../words/speech";
import { Content, type SidebarProps } from "./sidebar";

export function Drawer(props: SidebarProps) {
  const { say } = useSpeech();
  return (
    <Dialog.Root open onOpenChange={(open) => open || props.onHide()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Dialog.Content id="sidebar" aria-describedby={undefined} className="fixed inset-y-0 start-0 z-40 flex w-80 max-w-[85vw] flex-col bg-sunken pb-[env(safe-area-inset-bottom)] ps-[env(safe-area-inset-left)] shadow-float outline-none">
          <Dialog.Title className="sr-only">{say("rooms.sidebar")}</Dialog.Title>
          <Content {...props} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
