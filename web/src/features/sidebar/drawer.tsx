// The sidebar as a drawer in front of the page, in windows without space next to it.
import { Dialog } from "radix-ui";
import { useCloseOnBack } from "../../controls/close-on-back";
import { useLocalization } from "../../messages/localization";
import { stopSelecting } from "./selecting";
import { Content, type SidebarProps } from "./sidebar";

export function Drawer(props: SidebarProps) {
  const { t } = useLocalization();
  useCloseOnBack(props.onHide);
  return (
    <Dialog.Root open onOpenChange={(open) => open || props.onHide()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-overlay" />
        <Dialog.Content
          id="sidebar"
          aria-describedby={undefined}
          onEscapeKeyDown={(event) => stopSelecting("sidebar") && event.preventDefault()}
          className="fixed inset-y-0 start-0 z-40 flex w-80 max-w-[85vw] flex-col bg-sidebar short:overflow-y-auto pb-[env(safe-area-inset-bottom)] ps-[env(safe-area-inset-left)] shadow-float outline-none"
        >
          <Dialog.Title className="sr-only">{t("pages.sidebar")}</Dialog.Title>
          <Content {...props} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
