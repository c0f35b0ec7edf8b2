// The calls of all conversations that wait for the user's approval: their number, and a menu that leads to them.
import { useNavigate } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { Icon } from "../../controls/icon";
import { Menu, MenuItem } from "../../controls/menu";
import { useMessages } from "../../messages/localization";
import { organizingMessages } from "../../messages/organizing";

interface ApprovalsProps {
  waiting: Schemas["ListApproval"];
  onOpen: () => void;
}

export function Approvals({ waiting, onOpen }: ApprovalsProps) {
  const t = useMessages(organizingMessages);
  const navigate = useNavigate();
  return (
    <Menu
      trigger={
        <button
          type="button"
          className="flex min-h-9 w-full items-center gap-2.5 rounded-md px-2.5 text-start text-sm text-warning hover:bg-hover data-[state=open]:bg-hover pointer-coarse:min-h-11"
        >
          <Icon name="clock" size={16} />
          <span className="grow">
            {waiting.has_more ? t("pages.approvals.many") : t("pages.approvals", { count: waiting.data.length })}
          </span>
          <Icon name="chevronDown" size={14} />
        </button>
      }
    >
      {waiting.data.map(({ approval_id, action, summary, conversation_id }) => (
        <MenuItem
          key={approval_id}
          icon="clock"
          hint={summary}
          onSelect={() => {
            onOpen();
            void navigate({ to: "/c/$conversation", params: { conversation: conversation_id } });
          }}
        >
          {action}
        </MenuItem>
      ))}
    </Menu>
  );
}
