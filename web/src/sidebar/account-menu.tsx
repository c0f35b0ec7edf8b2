// The foot of the sidebar: who is signed in, and what belongs to the account.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { sessionQuery } from "../api/queries";
import { Icon } from "../controls/icon";
import { Menu, MenuItem } from "../controls/menu";
import { act } from "../keys/keys";
import { useSignOut } from "../rooms/sign-out";
import { useSpeech } from "../words/speech";

export function AccountMenu({ onOpen }: { onOpen: () => void }) {
  const { say } = useSpeech();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const navigate = useNavigate();
  const signOut = useSignOut();
  const name = session?.account.display_name ?? "";
  return (
    <Menu
      side="top"
      trigger={
        <button type="button" aria-label={say("rooms.account.menu", { name })} className="flex min-h-11 w-full items-center gap-2.5 rounded-md px-2.5 text-start text-sm hover:bg-hover data-[state=open]:bg-hover">
          <span aria-hidden className="flex size-6 shrink-0 items-center justify-center rounded-full bg-tide-wash text-xs font-semibold text-tide">
            {[...name][0]?.toLocaleUpperCase()}
          </span>
          <span className="flex min-w-0 grow">
            <span dir="auto" className="truncate [text-align:match-parent]">
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
        {say("rooms.settings.title")}
      </MenuItem>
      <MenuItem icon="keyboard" onSelect={() => act("shortcuts")}>
        {say("rooms.keys.title")}
      </MenuItem>
      <MenuItem icon="leave" onSelect={signOut}>
        {say("rooms.sign_out")}
      </MenuItem>
    </Menu>
  );
}
