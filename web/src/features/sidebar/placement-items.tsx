// The items of a conversation's menu that show its branches, and that share, export, pin, move and archive it.
import { useParams } from "@tanstack/react-router";
import type { Conversation } from "../../api/client";
import { MenuItem } from "../../controls/menu";
import { useLocalization } from "../../messages/localization";
import { useBranching } from "../conversation";
import { useMoving } from "./moving";
import { exportConversation, printConversation } from "./export";
import { archive, restore, setPinned } from "./placement";
import { useSharing } from "../sharing";

export function PlacementItems({ conversation }: { conversation: Conversation }) {
  const { t } = useLocalization();
  const shown = useParams({ strict: false }).conversation;
  const branches = (
    <MenuItem icon="route" onSelect={() => useBranching.setState({ conversation })}>
      {t("pages.branches.do")}
    </MenuItem>
  );
  if (conversation.temporary) return branches; // it is in no list, and cannot be shared
  const pinned = conversation.pinned_at !== null;
  const share = (
    <>
      {branches}
      <MenuItem icon="share" onSelect={() => useSharing.setState({ conversation })}>
        {t("pages.share.do")}
      </MenuItem>
      <MenuItem icon="download" onSelect={() => exportConversation(conversation.conversation_id, "markdown")}>
        {t("pages.export.markdown")}
      </MenuItem>
      {conversation.conversation_id === shown && (
        <MenuItem icon="print" onSelect={printConversation}>
          {t("pages.export.pdf")}
        </MenuItem>
      )}
      <MenuItem icon="download" onSelect={() => exportConversation(conversation.conversation_id, "json")}>
        {t("pages.export.json")}
      </MenuItem>
    </>
  );
  if (conversation.archived_at !== null)
    return (
      <>
        {share}
        <MenuItem icon="undo" onSelect={() => void restore(conversation, t)}>
          {t("pages.archive.restore")}
        </MenuItem>
      </>
    );
  return (
    <>
      {share}
      <MenuItem icon={pinned ? "unpin" : "pin"} onSelect={() => void setPinned(conversation, !pinned, t)}>
        {t(pinned ? "pages.pin.remove" : "pages.pin.do")}
      </MenuItem>
      <MenuItem icon="folder" onSelect={() => useMoving.setState({ conversations: [conversation] })}>
        {t("pages.move.do")}
      </MenuItem>
      <MenuItem icon="archive" onSelect={() => void archive(conversation, t)}>
        {t("pages.archive.do")}
      </MenuItem>
    </>
  );
}
