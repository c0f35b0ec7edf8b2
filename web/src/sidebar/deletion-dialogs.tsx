// The dialogs that confirm the deletion of a conversation.
import { useNavigate, useParams, useRouter } from "@tanstack/react-router";
import type { Conversation } from "../api/client";
import { focusComposer } from "../composer/composer-requests";
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { useLocalization } from "../messages/localization";
import { cancelDeletions, startDeletion, sendDeletion, useDeletion } from "./deletion";

const kinds = ["messages", "branches", "follow_ups"] as const;

export function DeletionDialogs() {
  const { t } = useLocalization();
  const { confirming, serverConfirmation } = useDeletion();
  const navigate = useNavigate();
  const router = useRouter();
  const open = useParams({ strict: false }).conversation;
  const titleOf = (conversation: Conversation) => conversation.title || t("pages.untitled");
  const leavePage = (conversation: Conversation) => {
    if (open === conversation.conversation_id) void navigate({ to: "/" });
  };
  /** Opens the conversation again if its deletion left it, unless the user has opened another page since. */
  const returnTo = (conversation: Conversation) => () => {
    if (open !== conversation.conversation_id || router.state.location.pathname !== "/") return;
    void navigate({ to: "/c/$conversation", params: { conversation: open } }).then(focusComposer);
  };
  if (confirming !== null) {
    const close = () => useDeletion.setState({ confirming: null });
    return (
      <Dialog
        title={t("pages.delete.title", { title: titleOf(confirming) })}
        description={t("pages.delete.description", { messages: confirming.message_count })}
        onClose={close}
        returnTo={rowOf(confirming)}
      >
        <DialogButtons
          onCancel={close}
          onDelete={() => {
            close();
            leavePage(confirming);
            startDeletion(confirming, t, returnTo(confirming));
          }}
        />
      </Dialog>
    );
  }
  if (serverConfirmation === null) return null;
  const { conversation, confirmation } = serverConfirmation;
  return (
    <Dialog
      title={t("pages.delete.title", { title: titleOf(conversation) })}
      description={t("pages.delete.live")}
      onClose={cancelDeletions}
      returnTo={rowOf(conversation)}
    >
      <ul className="list-disc ps-5 text-sm text-soft">
        {kinds
          .filter((kind) => (confirmation.will_delete[kind] ?? 0) > 0)
          .map((kind) => (
            <li key={kind}>{t(`pages.delete.count.${kind}`, { count: confirmation.will_delete[kind]! })}</li>
          ))}
      </ul>
      <DialogButtons
        onCancel={cancelDeletions}
        onDelete={() => {
          useDeletion.setState({ serverConfirmation: null });
          leavePage(conversation);
          sendDeletion(conversation, t, confirmation.token);
        }}
      />
    </Dialog>
  );
}

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

const rowOf = (conversation: Conversation) => () =>
  document.querySelector<HTMLElement>(`[data-conversation="${conversation.conversation_id}"]`);
