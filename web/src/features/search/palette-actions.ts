// The actions of the palette: on the open conversation, on the page, and on the appearance.
import { useNavigate } from "@tanstack/react-router";
import type { Conversation } from "../../api/client";
import { isStored } from "../../api/provisional";
import { change } from "../../api/settings-store";
import type { IconName } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { keysOf, requestAction } from "../../keys/keys";
import { type Localization, useLocalization, useMessages } from "../../messages/localization";
import { useBranching } from "../conversation";
import { useSharing } from "../sharing";
import { archive, confirmDeletion, editTitle, restore, setPinned, useSignOut } from "../sidebar";
import { searchingMessages } from "../../messages/searching";

interface Entry {
  label: string;
  icon: IconName;
  keys?: string;
  run: () => void;
}

/** Returns the actions in groups. current: the open conversation; undefined: none is known. */
export function useActions(current: Conversation | undefined): readonly { heading: string; items: readonly Entry[] }[] {
  const { language } = useLocalization();
  const t = useMessages(searchingMessages);
  const navigate = useNavigate();
  const signOut = useSignOut();
  return [
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
