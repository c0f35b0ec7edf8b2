// Where the user writes: what is typed is kept, and what is sent is kept until the service has it. It takes text at any
// time: while an answer is written, while the network is away, while a limit holds.
import { useQuery } from "@tanstack/react-query";
import { memo, useId, useRef, useState } from "react";
import type { ConversationPage } from "../api/client";
import type { Profile } from "../api/outbox";
import { settingsQuery } from "../api/queries";
import { useMedia } from "../controls/media";
import { onMac, shown } from "../keys/keys";
import { DraftClash } from "../rooms/problem-draft";
import type { LiveTurn } from "../turn/live";
import { useSpeech } from "../words/speech";
import { openDraft, saveDraft, typeDraft, useDrafts } from "./drafts";
import { WritingField } from "./field";
import { otherThan, type KeyAction, type SendKey, type Verb } from "./keys";
import { longestMessage } from "./length";
import { Notes } from "./notes";
import { keepProfile, ProfilePicker } from "./profiles";
import { SendButton, StopButton } from "./send";
import { lastSeen, useStanding, type Standing } from "./standing";
import { stopTurn } from "./stop";
import { useChat, type Chat } from "./use-chat";
import { useEscape, useFocus, useReturned, useWishedText } from "./use-composer";
import { useSend } from "./use-send";
import { wishEditLast } from "./wishes";

export interface ComposerProps {
  conversationID: string | null;
  page: ConversationPage | undefined;
  live: LiveTurn | null;
}

/** Drawn with every frame of a live turn; what is within, only when something that concerns it has changed. */
export function Composer({ conversationID, page, live }: ComposerProps) {
  const standing = useStanding(conversationID ?? "", page, live);
  return <Inner conversationID={conversationID} page={page} standing={standing} />;
}

interface InnerProps {
  conversationID: string | null;
  page: ConversationPage | undefined;
  standing: Standing;
}

const Inner = memo(function Inner({ conversationID, page, standing }: InnerProps) {
  const { say } = useSpeech();
  const noteID = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const chat = useChat(conversationID, page, field);
  const { id, draft } = chat;
  const [once, setOnce] = useState<Profile | null>(null);
  const [refused, dropRefused] = useReturned(id, draft.text);
  const unsaved = useDrafts((drafts) => drafts.unsaved[id] ?? false);
  const way = useSend(chat, standing, once, () => {
    setOnce(null);
    dropRefused();
    field.current?.focus();
  });
  const wrong = refused !== null || way.length > longestMessage;
  const { turn, stopping } = standing;
  const stop = (scope: "turn" | "turn_and_follow_ups") => turn !== null && !stopping && stopTurn(id, turn, lastSeen(turn, page), scope);
  // Not where that would bring a keyboard up.
  const returnTo = () => (matchMedia("(hover: hover)").matches ? field.current : null);
  useEscape(field, () => stop("turn"));
  useFocus(field);
  useWishedText(id);
  const sendKey = useSendKey();
  const act = (action: NonNullable<KeyAction>): boolean => {
    if (action === "edit-last") {
      if (page?.head_message_id == null) return false;
      wishEditLast();
      return true;
    }
    const other = otherThan(way.verb ?? "queue");
    way.submit(action === "other" && way.verbs.includes(other) ? other : way.verb);
    return true;
  };
  return (
    <form aria-label={say("composer.form")} onSubmit={(event) => event.preventDefault()}>
      <DraftClash id={id} draft={draft} />
      <div className={`rounded-lg border bg-raised shadow-float focus-within:outline-2 focus-within:-outline-offset-1 focus-within:outline-tide ${wrong ? "border-danger" : "border-edge"}`}>
        <WritingField
          field={field}
          aria-label={say("composer.label")}
          aria-invalid={wrong || undefined}
          aria-describedby={noteID}
          placeholder={say(turn === null ? "composer.placeholder" : "composer.placeholder.live")}
          value={draft.text}
          sendKey={sendKey}
          onText={(text) => {
            dropRefused();
            typeDraft(id, text);
          }}
          onAction={act}
          onBlur={() => saveDraft(id)}
        />
        <div className="flex items-center gap-2 p-2 pt-0.5">
          <Picker chat={chat} once={once} onOnce={setOnce} />
          <span className="grow" />
          {turn !== null && <StopButton stopping={stopping} queued={page?.follow_ups.filter((item) => item.state === "queued").length ?? 0} onStop={stop} returnTo={returnTo} />}
          {(turn === null || draft.text.trim() !== "") && (
            <SendButton verb={way.verb} verbs={way.verbs} keysOf={(one) => keysOf(one, way.verb, sendKey)} disabled={!way.canSend} reason={noteID} onSend={way.submit} returnTo={returnTo} />
          )}
        </div>
      </div>
      <Notes id={noteID} length={way.length} refused={refused} limit={way.limit} unsaved={unsaved && draft.text !== ""} turn={turn} />
    </form>
  );
});

/** What sends, by the account's setting and the keyboard that there is. */
function useSendKey(): SendKey {
  const touch = useMedia("(pointer: coarse) and (hover: none)");
  const wanted = useQuery(settingsQuery).data?.send_key ?? "enter";
  return touch ? "button" : wanted;
}

/** What Mod and Enter mean is shown where it is chosen. */
function keysOf(one: Verb, verb: Verb | null, sendKey: SendKey): string {
  if (sendKey === "button" || verb === null) return "";
  const [first, second] = sendKey === "enter" ? (["Enter", "Mod+Enter"] as const) : (["Mod+Enter", "Mod+Shift+Enter"] as const);
  return one === verb ? shown(first, onMac) : one === otherThan(verb) ? shown(second, onMac) : "";
}

function Picker({ chat, once, onOnce }: { chat: Chat; once: Profile | null; onOnce: (profile: Profile | null) => void }) {
  const { say } = useSpeech();
  const { id, page, fresh } = chat;
  const standard = useQuery(settingsQuery).data?.default_profile ?? "auto";
  const choose = (profile: Profile) => {
    if (fresh !== null) {
      chat.change({ ...fresh, profile });
      openDraft(id, { profile });
    } else if (page === undefined) onOnce(profile); // it is on its way to the service: the next message carries it
    if (page !== undefined) void keepProfile(page, profile, say);
  };
  return <ProfilePicker standing={page?.profile ?? fresh?.profile ?? standard} once={once} onStanding={choose} onOnce={onOnce} />;
}
