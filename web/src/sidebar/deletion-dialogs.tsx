// The questions about deleting a conversation.
import { useNavigate, useParams } from "@tanstack/react-router";
import type { Conversation } from "../api/client";
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { useSpeech } from "../words/speech";
import { begin, mark, send, useDeletion } from "./deletion";

const kinds = ["messages", "branches", "follow_ups"] as const;

export function Deletions() {
  const { say } = useSpeech();
  const { asked, confirm } = useDeletion();
  const navigate = useNavigate();
  const open = useParams({ strict: false }).conversation;
  const titleOf = (conversation: Conversation) => conversation.title || say("rooms.untitled");
  const leave = (conversation: Conversation) => {
    if (open === conversation.conversation_id) void navigate({ to: "/" });
  };
  if (asked !== null) {
    const close = () => useDeletion.setState({ asked: null });
    return (
      <Dialog title={say("rooms.delete.title", { title: titleOf(asked) })} description={say("rooms.delete.what", { messages: asked.message_count })} onClose={close} returnTo={rowOf(asked)}>
        <Answer
          onCancel={close}
          onDelete={() => {
            close();
            leave(asked);
            begin(asked, say);
          }}
        />
      </Dialog>
    );
  }
  if (confirm === null) return null;
  const { conversation, confirmation } = confirm;
  const close = () => {
    useDeletion.setState({ confirm: null });
    mark(conversation.conversation_id, null);
  };
  return (
    <Dialog title={say("rooms.delete.title", { title: titleOf(conversation) })} description={say("rooms.delete.live")} onClose={close} returnTo={rowOf(conversation)}>
      <ul className="list-disc ps-5 text-sm text-soft">
        {kinds.filter((kind) => (confirmation.will_delete[kind] ?? 0) > 0).map((kind) => (
          <li key={kind}>{say(`rooms.delete.count.${kind}`, { count: confirmation.will_delete[kind]! })}</li>
        ))}
      </ul>
      <Answer
        onCancel={close}
        onDelete={() => {
          useDeletion.setState({ confirm: null });
          leave(conversation);
          send(conversation, say, confirmation.token);
        }}
      />
    </Dialog>
  );
}

function Answer({ onCancel, onDelete }: { onCancel: () => void; onDelete: () => void }) {
  const { say } = useSpeech();
  return (
    <div className="flex justify-end gap-2">
      <Button onClick={onCancel}>{say("rooms.cancel")}</Button>
      <Button look="danger" icon="trash" onClick={onDelete}>
        {say("rooms.delete.do")}
      </Button>
    </div>
  );
}

const rowOf = (conversation: Conversation) => () => document.querySelector<HTMLElement>(`[data-conversation="${conversation.conversation_id}"]`);
