// The account menu at the foot of the sidebar: the name of the user, settings, shortcuts and sign-out.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { sessionQuery } from "../../api/queries";
import { Icon } from "../../controls/icon";
import { Menu, MenuItem } from "../../controls/menu";
import { requestAction } from "../../keys/keys";
import { useSignOut } from "./sign-out";
import { useLocalization } from "../../messages/localization";

export function AccountMenu({ onOpen }: { onOpen: () => void }) {
  const { t } = useLocalization();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const navigate = useNavigate();
  const signOut = useSignOut();
  const name = session?.account.display_name ?? "";
  return (
    <Menu
      side="top"
      trigger={
        <button
          type="button"
          aria-label={t("pages.account.menu", { name })}
          className="flex min-h-11 w-full items-center gap-2.5 rounded-md px-2.5 text-start text-sm hover:bg-hover data-[state=open]:bg-hover"
        >
          <span
            aria-hidden
            className="flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-wash text-xs font-semibold text-accent"
          >
            {[...name][0]?.toLocaleUpperCase()}
          </span>
          <span className="flex min-w-0 grow">
            <span dir="auto" className="truncate text-as-parent">
              {name}
            </span>
          </span>
          <Icon name="chevronDown" size={16} />
        </button>
      }
    >
      <MenuItem
        icon="settings"
        onSelect={() => {
          onOpen();
          void navigate({ to: "/settings" });
        }}
      >
        {t("pages.settings.title")}
      </MenuItem>
      <MenuItem icon="keyboard" onSelect={() => requestAction("shortcuts")}>
        {t("pages.keys.title")}
      </MenuItem>
      <MenuItem icon="leave" onSelect={signOut}>
        {t("pages.sign_out")}
      </MenuItem>
    </Menu>
  );
}
