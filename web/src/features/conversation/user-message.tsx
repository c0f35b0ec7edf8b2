// A user message, displayed as written except for fenced code, with its versions. A message that is not accepted yet
// shows the state of its delivery.
import { memo, useEffect, useRef, useState } from "react";
import { sendMessage, type Outgoing } from "../../api/outbox";
import { deferred } from "../../controls/deferred";
import { Button, IconButton } from "../../controls/button";
import type { Message } from "../../generated/events";
import { Code } from "../../parts/code";
import { CopyButton } from "../../parts/copy-button";
import { splitFences } from "../../parts/fences";
import { Folded } from "../../parts/folded";
import { lineCount, previewOf } from "../../parts/preview";
import { copyText, saveText } from "../../parts/export-text";
import { usePrinting } from "../../parts/printing";
import { focusComposer, OutboxMessageNotice } from "../composer";
import { useLocalization } from "../../messages/localization";
import { Actions, MessageMenu, SentAt, Siblings } from "./actions";
import { Editor } from "./editor";
import { textOf } from "./markdown-of";
import { useConversationContext } from "./conversation-context";

const MessageFiles = deferred(() => import("./files").then((m) => m.MessageFiles), { onFailure: () => {} });

interface UserMessageProps {
  message: Message | null;
  outgoing: Outgoing | null;
  /** Whether the user requests to edit this message. */
  edit: boolean;
}

export const UserMessage = memo(function UserMessage({ message, outgoing, edit }: UserMessageProps) {
  const { t } = useLocalization();
  const { id, busy, editHandled } = useConversationContext();
  const [editing, setEditing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const text = outgoing?.text ?? textOf(message);
  const files = outgoing?.attachments?.map((file) => file.id) ?? message?.attachments ?? [];
  useEffect(() => {
    if (!edit) return;
    if (message !== null && !busy) setEditing(true);
    editHandled();
    // Only a new request opens the editor, not a change of message or busy.
  }, [edit]);
  const close = () => {
    setEditing(false);
    requestAnimationFrame(() => button.current?.focus());
  };
  if (editing && message !== null) {
    return (
      <Editor
        text={text}
        optional={files.length > 0}
        onCancel={close}
        onSend={(changed) => {
          setEditing(false);
          sendMessage({
            conversationID: id,
            text: changed,
            ...(files.length === 0 ? {} : { attachments: files.map((id) => ({ id, name: "" })) }),
            branch: { message_id: message.message_id, mode: "edit" },
            ifBusy: "reject",
          });
          focusComposer(); // the editor disappears
        }}
      />
    );
  }
  return (
    <div className="relative flex flex-col items-end">
      {files.length > 0 && <MessageFiles ids={files} />}
      {text !== "" && <Bubble text={text} faint={outgoing !== null && outgoing.state !== "accepted"} />}
      {outgoing !== null && <DeliveryState outgoing={outgoing} />}
      {message !== null && (
        <Actions always={message.sibling_count > 1} overlay>
          {() => (
            <>
              <SentAt at={message.created_at} />
              <CopyButton label={t("transcript.copy")} copy={() => copyText(text)} />
              {!busy && (
                <IconButton
                  ref={button}
                  size="small"
                  icon="edit"
                  label={t("transcript.edit")}
                  onClick={() => setEditing(true)}
                />
              )}
              <MessageMenu message={message} onRegenerate={null} />
              <Siblings message={message} />
            </>
          )}
        </Actions>
      )}
    </div>
  );
});

const foldedAbove = 20;
const foldedTo = 12;
const maxPreviewLength = 2_500;

function Bubble({ text, faint }: { text: string; faint: boolean }) {
  const { t } = useLocalization();
  const long = text.length > maxPreviewLength || lineCount(text) > foldedAbove;
  const [unfolded, setOpen] = useState(false);
  const open = usePrinting() || unfolded;
  const { lines, cut } = open || !long ? previewOf(text) : previewOf(text.slice(0, maxPreviewLength), foldedTo);
  const shown = lines.join("\n");
  return (
    <div
      data-bubble=""
      className={`max-w-[85%] rounded-lg bg-sunken px-4 py-2.5 pointer-coarse:select-none ${faint ? "text-soft" : ""}`}
    >
      {splitFences(shown + (long && !open ? "…" : "")).map((piece, at) =>
        "text" in piece ? (
          <p key={at} dir="auto" className="wrap-anywhere whitespace-pre-wrap">
            {piece.text}
          </p>
        ) : (
          <div key={at} className="[&>figure]:my-2 [&>figure]:bg-raised">
            <Code {...piece} streaming={false} />
          </div>
        ),
      )}
      {long && !open && (
        <p>
          <Folded onFound={() => setOpen(true)}>{text.slice(shown.length)}</Folded>
        </p>
      )}
      {long && (
        <div className="mt-1 -ms-3 flex flex-wrap items-center">
          <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {t(open ? "transcript.less" : "transcript.more")}
          </Button>
          {open && cut && (
            <Button look="quiet" icon="download" onClick={() => saveText("message.txt", text)}>
              {t("transcript.cut_save")}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

/** The state of the delivery of an outgoing message; nothing is visible if it is accepted quickly. */
function DeliveryState({ outgoing }: { outgoing: Outgoing }) {
  const { t } = useLocalization();
  const { key, state, problem } = outgoing;
  if (state === "accepted") return null;
  if (state === "sending" && problem === null)
    return <p className="mt-1 animate-delayed text-xs text-faint">{t("transcript.sending")}</p>;
  return (
    <div className="mt-1.5 max-w-[85%]">
      <OutboxMessageNotice messageKey={key} />
    </div>
  );
}
