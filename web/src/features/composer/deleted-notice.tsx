// The notice in place of sending after the conversation was deleted elsewhere: what was written can still be sent, in a
// new conversation.
import { useNavigate } from "@tanstack/react-router";
import { useAttachments, withNames } from "../../api/attachments";
import { newIdentifier } from "../../api/identifier";
import { sendMessage } from "../../api/outbox";
import { toolsOf } from "../../api/tool-choice";
import { Button } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";
import { focusComposer } from "./composer-requests";
import { isEmpty } from "./draft";
import { drafts } from "./page-drafts";
import type { Chat } from "./use-chat";

/** canSend: whether the message could be sent if the conversation still existed. */
export function DeletedNotice({ chat, canSend }: { chat: Chat; canSend: boolean }) {
  const t = useMessages(writingMessages);
  const navigate = useNavigate();
  const { id, page, draft } = chat;
  const empty = isEmpty(draft);
  const start = () => {
    if (empty) return void navigate({ to: "/" }).then(focusComposer);
    const { text, files } = draft;
    const conversation = newIdentifier("conv");
    const tools = toolsOf(id);
    sendMessage({
      conversationID: conversation,
      text: text.trim(),
      ...(files.length === 0 ? {} : { attachments: withNames(files, useAttachments.getState()) }),
      ifBusy: "reject",
      ...(tools === undefined ? {} : { tools }),
      newConversation: { profile: page?.profile ?? null, temporary: page?.temporary ?? false },
    });
    drafts.empty(id, { text, files });
    void navigate({ to: "/c/$conversation", params: { conversation } }).then(focusComposer);
  };
  return (
    <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md bg-warning-wash px-3 py-2 text-sm">
      <p role="alert" className="flex min-w-60 grow basis-60 gap-2 text-warning">
        <span className="mt-0.5">
          <Icon name="trash" size={16} />
        </span>
        {t(empty ? "writing.deleted" : "writing.deleted.kept")}
      </p>
      <Button disabled={!empty && !canSend} onClick={start}>
        {t(empty ? "writing.deleted.new" : "writing.deleted.send")}
      </Button>
    </div>
  );
}
