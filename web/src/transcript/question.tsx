// What the user said: as it was written, with its versions. One on its way says how far it is.
import { memo, useEffect, useRef, useState } from "react";
import { sendMessage, type Outgoing } from "../api/outbox";
import { Button, IconButton } from "../controls/button";
import type { Message } from "../generated/events";
import { CopyButton } from "../parts/copy-button";
import { lineCount, previewOf } from "../parts/cut";
import { saveText } from "../parts/keep";
import { LetterNotice } from "../rooms/problem-letter";
import { useSpeech } from "../words/speech";
import { Actions, Siblings } from "./actions";
import { Editor } from "./editor";
import { useRoom } from "./room";

interface QuestionProps {
  message: Message | null;
  outgoing: Outgoing | null;
  /** Counts the wishes to edit this one. */
  wished: number;
}

export const Question = memo(function Question({ message, outgoing, wished }: QuestionProps) {
  const { say } = useSpeech();
  const { id, busy } = useRoom();
  const [editing, setEditing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const text = outgoing?.text ?? textOf(message);
  useEffect(() => {
    if (wished > 0 && message !== null && !busy) setEditing(true);
    // Only a wish opens the editor, not what changes meanwhile.
  }, [wished]);
  const close = () => {
    setEditing(false);
    requestAnimationFrame(() => button.current?.focus());
  };
  if (editing && message !== null) {
    return (
      <Editor
        text={text}
        onCancel={close}
        onSend={(changed) => {
          setEditing(false);
          sendMessage({ conversationID: id, text: changed, branch: { message_id: message.message_id, mode: "edit" }, busy: "reject" });
        }}
      />
    );
  }
  return (
    <div className="flex flex-col items-end">
      {text !== "" && <Bubble text={text} faint={outgoing !== null && outgoing.state !== "accepted"} />}
      {outgoing !== null && <Way outgoing={outgoing} />}
      {message !== null && (
        <Actions always={message.sibling_count > 1} end>
          {() => (
            <>
              <CopyButton label={say("transcript.copy")} text={() => text} />
              {!busy && <IconButton ref={button} size="small" icon="edit" label={say("transcript.edit")} onClick={() => setEditing(true)} />}
              <Siblings message={message} />
            </>
          )}
        </Actions>
      )}
    </div>
  );
});

export function textOf(message: Message | null): string {
  return message?.parts.filter((part) => part.type === "text").map((part) => part.text ?? "").join("\n\n") ?? "";
}

const foldedAbove = 20;
const foldedTo = 12;
const longest = 2_500;

function Bubble({ text, faint }: { text: string; faint: boolean }) {
  const { say } = useSpeech();
  const long = text.length > longest || lineCount(text) > foldedAbove;
  const [open, setOpen] = useState(false);
  const { lines, cut } = open || !long ? previewOf(text) : previewOf(text.slice(0, longest), foldedTo);
  return (
    <div className={`max-w-[85%] rounded-lg bg-sunken px-4 py-2.5 ${faint ? "text-soft" : ""}`}>
      <p dir="auto" className="wrap-anywhere whitespace-pre-wrap">
        {lines.join("\n")}
        {long && !open && "…"}
      </p>
      {long && (
        <div className="mt-1 -ms-3 flex flex-wrap items-center">
          <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {say(open ? "transcript.less" : "transcript.more")}
          </Button>
          {open && cut && (
            <Button look="quiet" icon="download" onClick={() => saveText("message.txt", text)}>
              {say("transcript.cut_save")}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

/** How far a message is that was sent from here; silent while all goes well and fast. */
function Way({ outgoing }: { outgoing: Outgoing }) {
  const { say } = useSpeech();
  const { key, state, problem } = outgoing;
  if (state === "accepted") return null;
  if (state === "sending" && problem === null) return <p className="mt-1 animate-late text-xs text-faint">{say("transcript.sending")}</p>;
  return (
    <div className="mt-1.5 max-w-[85%]">
      <LetterNotice letterKey={key} />
    </div>
  );
}
