// The dialogs that confirm the deletion of conversations.
import { useNavigate, useParams, useRouter } from "@tanstack/react-router";
import type { Conversation } from "../../api/client";
import { focusComposer } from "../composer";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { useLocalization, useMessages } from "../../messages/localization";
import { cancelDeletions, useDeletion } from "./deletion";
import { sendDeletion, startDeletion } from "./deletion-requests";
import { deselect } from "./selecting";
import { organizingMessages, type OrganizingMessageKey } from "../../messages/organizing";
import type { Translate } from "../../messages/catalog";

const kinds = ["messages", "branches", "follow_ups"] as const;

export function DeletionDialogs() {
  const t = useMessages(organizingMessages);
  const { confirming, serverConfirmations } = useDeletion();
  const navigate = useNavigate();
  const router = useRouter();
  const open = useParams({ strict: false }).conversation;
  const isOpen = (one: Conversation) => one.conversation_id === open;
  const leavePage = (conversations: readonly Conversation[]) => {
    if (conversations.some(isOpen)) void navigate({ to: "/" });
  };
  /** Opens the conversation again if its deletion left it, unless the user has opened another page since. */
  const returnTo = (conversations: readonly Conversation[]) => () => {
    if (open === undefined || !conversations.some(isOpen) || router.state.location.pathname !== "/") return;
    void navigate({ to: "/c/$conversation", params: { conversation: open } }).then(focusComposer);
  };
  if (confirming.length > 0) {
    const close = () => useDeletion.setState({ confirming: [] });
    const count = confirming.length;
    const messages = confirming.reduce((sum, one) => sum + one.message_count, 0);
    return (
      <Dialog
        title={titleOf(confirming, t)}
        description={
          count === 1
            ? t("pages.delete.description", { messages })
            : t("pages.delete.description_many", { count, messages })
        }
        onClose={close}
        returnTo={rowOf(confirming)}
      >
        <DialogButtons
          onCancel={close}
          onDelete={() => {
            close();
            leavePage(confirming);
            deselect(confirming);
            startDeletion(confirming, t, returnTo(confirming));
          }}
        />
      </Dialog>
    );
  }
  if (serverConfirmations.length === 0) return null;
  const conversations = serverConfirmations.map(({ conversation }) => conversation);
  const total = (kind: (typeof kinds)[number]) =>
    serverConfirmations.reduce((sum, { confirmation }) => sum + (confirmation.will_delete[kind] ?? 0), 0);
  return (
    <Dialog
      title={titleOf(conversations, t)}
      description={t("pages.delete.live", { count: conversations.length })}
      onClose={cancelDeletions}
      returnTo={rowOf(conversations)}
    >
      <ul className="list-disc ps-5 text-sm text-soft">
        {kinds
          .filter((kind) => total(kind) > 0)
          .map((kind) => (
            <li key={kind}>{t(`pages.delete.count.${kind}`, { count: total(kind) })}</li>
          ))}
      </ul>
      <DialogButtons
        onCancel={cancelDeletions}
        onDelete={() => {
          useDeletion.setState({ serverConfirmations: [] });
          leavePage(conversations);
          const tokenOf = ({ conversation, confirmation }: (typeof serverConfirmations)[number]) =>
            [conversation.conversation_id, confirmation.token] as const;
          sendDeletion(conversations, t, new Map(serverConfirmations.map(tokenOf)));
        }}
      />
    </Dialog>
  );
}

const titleOf = (conversations: readonly Conversation[], t: Translate<OrganizingMessageKey>): string =>
  conversations.length === 1
    ? t("pages.delete.title", { title: conversations[0]!.title || t("pages.untitled") })
    : t("pages.delete.title_many", { count: conversations.length });

function DialogButtons({ onCancel, onDelete }: { onCancel: () => void; onDelete: () => void }) {
  const { t } = useLocalization();
  return (
    <div className="flex justify-end gap-2">
      <Button autoFocus onClick={onCancel}>
        {t("pages.cancel")}
      </Button>
      <Button look="danger" icon="trash" onClick={onDelete}>
        {t("pages.delete.do")}
      </Button>
    </div>
  );
}

/** Returns the element to focus afterwards: the button of the selection if it still exists, else the first row. */
const rowOf = (conversations: readonly Conversation[]) => () =>
  document.querySelector<HTMLElement>("[data-delete-selected]") ??
  document.querySelector<HTMLElement>(`[data-conversation="${conversations[0]?.conversation_id}"]`);
