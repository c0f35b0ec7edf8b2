// Where the user writes: what is typed is kept, and what is sent is kept until the service has it. It takes text at any
// time: while an answer is written, while the network is away, while a limit holds.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useId, useRef, useState } from "react";
import type { ConversationPage } from "../api/client";
import { sendMessage, useLimit, usePatience, type Profile } from "../api/outbox";
import { queryClient, conversationQuery, settingsQuery } from "../api/queries";
import { useSecondsUntil } from "../controls/countdown";
import { useMedia } from "../controls/media";
import { onMac, shown } from "../keys/keys";
import type { LiveTurn } from "../turn/live";
import { DraftClash } from "../rooms/problem-draft";
import { useSpeech } from "../words/speech";
import { draftSent, openDraft, saveDraft, toBeMade, typeDraft, useDrafts } from "./drafts";
import { WritingField } from "./field";
import { otherThan, type KeyAction, type SendKey, type Verb } from "./keys";
import { lengthOf, longestMessage, longestSteering } from "./length";
import { endNewChat } from "./new-chat";
import { Notes } from "./notes";
import { keepProfile, ProfilePicker } from "./profiles";
import { SendButton, StopButton } from "./send";
import { useStanding, type Standing } from "./standing";
import { stopTurn } from "./stop";
import { useChat, type Chat } from "./use-chat";
import { useEscape, useFocus, useReturned, useWishedText } from "./use-composer";
import { wishEditLast } from "./wishes";

export interface ComposerProps {
  conversationID: string | null;
  page: ConversationPage | undefined;
  live: LiveTurn | null;
}

export function Composer({ conversationID, page, live }: ComposerProps) {
  const { say } = useSpeech();
  const chat = useChat(conversationID, page);
  const { id, draft } = chat;
  const settings = useQuery(settingsQuery).data;
  const standing = useStanding(id, chat.page, live);
  const [once, setOnce] = useState<Profile | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const noteID = useId();
  const navigate = useNavigate();
  const touch = useMedia("(pointer: coarse) and (hover: none)");
  const sendKey: SendKey = touch ? "button" : (settings?.send_key ?? "enter");
  const wanted = settings?.busy_action ?? "queue";
  const verbs = verbsOf(standing);
  const verb = verbs === null ? null : verbs.includes(wanted) ? wanted : "queue";
  const [refused, dropRefused] = useReturned(id, draft.text);
  const limited = useLimited();
  const length = lengthOf(draft.text);
  const most = verb === "steer" || verb === "interrupt" ? longestSteering : longestMessage;
  const unsaved = useDrafts((drafts) => drafts.unsaved[id] ?? false);
  const canSend = draft.text.trim() !== "" && length <= most && !limited.holds;

  const stop = (scope: "turn" | "turn_and_follow_ups") => standing.turn !== null && !standing.stopping && stopTurn(id, standing.turn, standing.seen, scope);
  useEscape(field, () => stop("turn"));
  useFocus(field);
  useWishedText(id);

  const submit = (as: Verb | null) => {
    const text = draft.text.trim();
    const steers = as === "steer" || as === "interrupt";
    if (!canSend || lengthOf(text) > (steers ? longestSteering : longestMessage)) return;
    const opening = toBeMade(id);
    const head = as === null ? headSeen(chat, live) : undefined;
    sendMessage({
      conversationID: id,
      text,
      busy: as ?? "reject",
      ...(steers && standing.turn !== null ? { turn: standing.turn } : {}),
      ...(once === null || steers ? {} : { profile: once }),
      ...(head === undefined ? {} : { head }),
      ...(opening === undefined ? {} : { fresh: opening }),
    });
    draftSent(id, text);
    setOnce(null);
    dropRefused();
    field.current?.focus();
    if (chat.fresh === null) return;
    endNewChat(id);
    void navigate({ to: "/c/$conversation", params: { conversation: id } });
  };

  const act = (action: NonNullable<KeyAction>): boolean => {
    if (action === "edit-last") {
      if (chat.page?.head_message_id == null) return false;
      wishEditLast();
    } else submit(verb === null || action === "send" || verbs === null ? verb : pick(otherThan(verb), verbs));
    return true;
  };

  return (
    <form aria-label={say("composer.form")} onSubmit={(event) => event.preventDefault()} className="mx-auto w-full max-w-(--width-prose) px-4 pb-[max(0.75rem,env(safe-area-inset-bottom))]">
      <DraftClash id={id} draft={draft} />
      <div className={`rounded-lg border bg-raised shadow-float focus-within:outline-2 focus-within:outline-offset-1 focus-within:outline-tide ${refused !== null || length > most ? "border-danger" : "border-edge"}`}>
        <WritingField
          field={field}
          aria-label={say("composer.label")}
          aria-invalid={refused !== null || length > most || undefined}
          aria-describedby={noteID}
          placeholder={say(standing.turn === null ? "composer.placeholder" : "composer.placeholder.live")}
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
          <ProfilePicker standing={chat.page?.profile ?? chat.fresh?.profile ?? settings?.default_profile ?? "auto"} once={once} onStanding={(profile) => chooseProfile(chat, profile, say, setOnce)} onOnce={setOnce} />
          <span className="grow" />
          {standing.turn !== null && <StopButton stopping={standing.stopping} queued={chat.page?.follow_ups.filter((item) => item.state === "queued").length ?? 0} onStop={stop} />}
          {(standing.turn === null || draft.text.trim() !== "") && (
            <SendButton verb={verb} verbs={verbs ?? []} keysOf={(one) => keysOf(one, verb, sendKey)} disabled={!canSend} reason={noteID} onSend={submit} />
          )}
        </div>
      </div>
      <Notes id={noteID} length={length} most={most} refused={refused} limit={limited} unsaved={unsaved && draft.text !== ""} turn={standing.turn} />
    </form>
  );
}

/** The ways to send while an answer is written, or about to be; null: it is simply sent. */
function verbsOf({ turn, underWay, acceptsSteering, stopping }: Standing): readonly Verb[] | null {
  if (turn === null) return underWay ? ["queue"] : null;
  return acceptsSteering && !stopping ? ["queue", "steer", "interrupt"] : ["queue"];
}

const pick = (verb: Verb, verbs: readonly Verb[]): Verb => (verbs.includes(verb) ? verb : "queue");

/** What Mod and Enter mean is shown where it is chosen. */
function keysOf(one: Verb, verb: Verb | null, sendKey: SendKey): string {
  if (sendKey === "button" || verb === null) return "";
  const [first, second] = sendKey === "enter" ? (["Enter", "Mod+Enter"] as const) : (["Mod+Enter", "Mod+Shift+Enter"] as const);
  return one === verb ? shown(first, onMac) : one === otherThan(verb) ? shown(second, onMac) : "";
}

/** The head that the writer sees, where that is certain; a message written on top of another one is asked about. */
function headSeen({ page, fresh, id }: Chat, live: LiveTurn | null): string | null | undefined {
  if (page === undefined || fresh !== null || queryClient.getQueryState(conversationQuery(id).queryKey)?.isInvalidated) return undefined;
  return live === null || live.view.messageID === page.head_message_id ? page.head_message_id : undefined;
}

function chooseProfile(chat: Chat, profile: Profile, say: Parameters<typeof keepProfile>[2], setOnce: (once: Profile | null) => void): void {
  if (chat.fresh !== null) {
    chat.change({ ...chat.fresh, profile });
    openDraft(chat.id, chat.fresh.made ? undefined : { profile });
  }
  if (chat.page !== undefined) void keepProfile(chat.page, profile, say);
  else if (chat.fresh === null) setOnce(profile); // it is on its way to the service: the next message carries it
}

function useLimited(): { holds: boolean; seconds: number } {
  const until = useLimit((limit) => limit.until);
  const patient = usePatience((choice) => choice.patient);
  const seconds = useSecondsUntil(until);
  return { holds: seconds > 0 && !patient, seconds };
}
