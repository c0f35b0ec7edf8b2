// The composer. It stores typed text as a draft, and sent text in the outbox until the service accepts it. It accepts
// text at any time: during a live turn, without a network, and under a rate limit.
import { useQuery } from "@tanstack/react-query";
import { memo, useId, useRef, useState } from "react";
import type { ConversationPage } from "../../api/client";
import type { Profile } from "../../api/outbox";
import { settingsQuery } from "../../api/queries";
import { maxInput } from "../../generated/limits";
import { onTouchScreen } from "../../controls/media";
import { onMac, formatKeys } from "../../keys/keys";
import { useSendKey, useSendModes } from "../../keys/send-keys";
import { sendKeys, type SendKey, type SendMode } from "../../keys/send-modes";
import { deferred } from "../../controls/deferred";
import { useLater } from "../../controls/later";
import { IconButton } from "../../controls/button";
import { ResearchPanel, toggleResearch } from "../research";
import { AddFilesMenu, addFiles } from "./add-files";
import { isEmpty } from "./draft";
import type { LiveTurn } from "../../turn/live";
import { useRunningTasks } from "../../turn/running-tasks";
import { useLocalization } from "../../messages/localization";
import { drafts, useDrafts } from "./page-drafts";
import { WritingField } from "./field";
import type { KeyAction } from "./keys";
import { DictationButton } from "./dictation-button";
import type { DictationState } from "./speech";
import { longestPaste } from "./text-limits";
import { Notes } from "./notes";
import { storeProfile, ProfilePicker } from "./profiles";
import { SendButton, StopButton } from "./send";
import { lastReceivedSequence, useComposerState, type ComposerState } from "./composer-state";
import { stopTurn } from "./steering-requests";
import { ToolsMenu } from "./tools";
import { TemporaryNotice, TemporaryToggle } from "./temporary";
import { useChat, type Chat } from "./use-chat";
import { useEscape, useFocus, useRefusedText } from "./use-composer";
import { useSend } from "./use-send";
import { useResearch } from "./use-research";
import { useTemporary } from "./use-temporary";
import { requestEditLast } from "./composer-requests";

const Attached = deferred(() => import("./attached").then((m) => m.Attached), { onFailure: () => {} });
const Mentions = deferred(() => import("./mentions").then((m) => m.Mentions), { onFailure: () => {} });
const DraftConflict = deferred(() => import("./draft-conflict").then((m) => m.DraftConflict), { onFailure: () => {} });

export interface ComposerProps {
  conversationID: string | null;
  page: ConversationPage | undefined;
  live: LiveTurn | null;
  /** Whether the conversation was deleted while it was displayed. */
  deleted: boolean;
  /** The project on whose page a new conversation is written, which it opens when it is sent. */
  project?: string;
}

/** Renders on every frame of a live turn; Inner renders only when one of its props has changed. */
export function Composer({ conversationID, page, live, deleted, project }: ComposerProps) {
  const state = useComposerState(conversationID ?? "", deleted ? undefined : page, live);
  return <Inner conversationID={conversationID} page={page} state={state} deleted={deleted} project={project} />;
}

interface InnerProps {
  conversationID: string | null;
  page: ConversationPage | undefined;
  state: ComposerState;
  deleted: boolean;
  project: string | undefined;
}

const Inner = memo(function Inner({ conversationID, page, state, deleted, project }: InnerProps) {
  const { t } = useLocalization();
  const noteID = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const chat = useChat(conversationID, page, project);
  const { id, draft } = chat;
  const researches = useRunningTasks(({ byID }) => Object.values(byID).includes(id));
  const temporary = useTemporary(chat, state.messageInFlight || researches);
  const later = useLater();
  const [once, setOnce] = useState<Profile | null>(null);
  const [refused, dropRefused] = useRefusedText(id, draft.text);
  // The conversation in whose message a file may be named with "@", or a prompt with "/".
  const [mentioning, setMentioning] = useState<string | null>(null);
  const unsaved = useDrafts(({ unsaved }) => unsaved[id] ?? false);
  const [dictation, setDictation] = useState<{ id: string; state: DictationState } | null>(null);
  const dictating = dictation?.id === id ? dictation.state : null;
  const sent = () => {
    setDictation((current) => current && { ...current, state: "sent" });
    setOnce(null);
    dropRefused();
    field.current?.focus();
  };
  const way = useSend(chat, state, once, sent);
  const research = useResearch(chat, way, sent);
  const wrong = refused !== null || way.length > maxInput;
  const { turn, stopping } = state;
  const stop = (scope: "turn" | "turn_and_follow_ups") =>
    turn !== null && !stopping && stopTurn(id, turn, lastReceivedSequence(turn, page), scope);
  // Not on touch screens, where focus would open the on-screen keyboard.
  const returnTo = () => (onTouchScreen() ? null : field.current);
  useEscape(field, () => stop("turn"));
  useFocus(field);
  const sendKey = useSendKey();
  const { second } = useSendModes();
  const blocked = deleted || (chat.fresh === null && temporary?.changing === true);
  const act = (action: NonNullable<KeyAction>): boolean => {
    if (blocked) return true;
    if (action === "edit-last") {
      if (page?.head_message_id == null) return false;
      requestEditLast();
      return true;
    }
    if (research.on) {
      research.submit();
      return true;
    }
    const other = second(way.verb ?? "queue");
    way.submit(action === "other" && way.verbs.includes(other) ? other : way.verb);
    return true;
  };
  return (
    <form
      aria-label={t("composer.form")}
      onSubmit={(event) => event.preventDefault()}
      onPaste={(event) => {
        const text = event.clipboardData.getData("text/plain");
        const { files } = event.clipboardData;
        if (text.length <= longestPaste && (files.length === 0 || text !== "")) return;
        event.preventDefault();
        void addFiles(id, text === "" ? files : text);
      }}
    >
      {draft.conflict !== null && <DraftConflict id={id} mine={draft.text} theirs={draft.conflict.text} />}
      {temporary !== null && <TemporaryNotice on={temporary.on} />}
      <div
        className={`relative rounded-lg border bg-raised shadow-rest in-data-keyboard:has-[textarea:focus]:outline-2 in-data-keyboard:has-[textarea:focus]:-outline-offset-1 in-data-keyboard:has-[textarea:focus]:outline-accent ${wrong ? "border-danger" : "border-line has-[textarea:focus]:border-edge"}`}
      >
        {(later || deleted || draft.files.length > 0) && (
          <Attached
            conversation={id}
            files={draft.files}
            deleted={deleted ? chat : null}
            canSend={way.canSend}
            isStored={chat.fresh === null}
            takesDrops={project === undefined}
            noteID={`${noteID}-files`}
          />
        )}
        {research.on && (
          <ResearchPanel
            conversation={id}
            length={way.length}
            files={draft.files.length}
            temporary={temporary?.on ?? chat.page?.temporary ?? false}
            isEmpty={() => chat.fresh === null && isEmpty(drafts.state.getState().byID[id]!)}
          />
        )}
        {mentioning === id && <Mentions key={id} conversation={id} page={project} field={field} />}
        <WritingField
          field={field}
          aria-label={t("composer.label")}
          aria-invalid={wrong || undefined}
          aria-describedby={noteID}
          placeholder={t(
            research.on
              ? "composer.research.placeholder"
              : turn === null
                ? "composer.placeholder"
                : "composer.placeholder.live",
          )}
          value={draft.text}
          sendKey={sendKey}
          onText={(text) => {
            dropRefused();
            drafts.type(id, text);
            if (/[@＠/／]/.test(text)) setMentioning(id);
          }}
          onAction={act}
          onBlur={() => drafts.save(id)}
        />
        <div className="flex items-center gap-1.5 p-2 pt-0.5 max-sm:gap-0">
          <AddFilesMenu conversation={id} />
          <IconButton
            icon="research"
            label={t("composer.research")}
            aria-pressed={research.on}
            aria-disabled={research.sending || undefined}
            // A phone has no room for it beside the buttons that stop an answer and send during one.
            className={research.on ? "bg-hover text-ink" : turn === null ? "" : "max-sm:hidden"}
            onClick={() => research.sending || toggleResearch(id)}
          />
          {!research.on && (
            <>
              <ToolsMenu conversation={id} isStored={chat.page !== undefined} />
              <Picker chat={chat} once={once} onOnce={setOnce} />
            </>
          )}
          {temporary !== null && (
            <TemporaryToggle on={temporary.on} disabled={temporary.changing} onChange={temporary.change} />
          )}
          <span className="grow" />
          {turn !== null && (
            <StopButton
              stopping={stopping}
              queued={page?.follow_ups.filter((item) => item.state === "queued").length ?? 0}
              onStop={stop}
              returnTo={returnTo}
            />
          )}
          <DictationButton
            conversation={id}
            state={dictating}
            onChange={(state) => setDictation(state && { id, state })}
            className={turn === null ? "" : "max-sm:hidden"}
          />
          {(turn === null || !way.empty) && (
            <SendButton
              label={research.on ? t("composer.research.start") : undefined}
              verb={research.on ? null : way.verb}
              verbs={way.verbs}
              keysOf={(one) => (way.verb === null ? "" : keysOf(one, way.verb, second(way.verb), sendKey))}
              disabled={!(research.on ? research.canSend : way.canSend) || blocked}
              uploading={way.uploading}
              reason={`${noteID} ${noteID}-files`}
              onSend={research.on ? research.submit : way.submit}
              returnTo={returnTo}
            />
          )}
        </div>
      </div>
      <Notes
        id={noteID}
        conversationID={id}
        length={way.length}
        refused={refused}
        limit={way.limit}
        unsaved={unsaved && !isEmpty(draft)}
        turn={turn}
        waits={state.waits && !stopping}
      />
    </form>
  );
});

/** The key combination shown next to a way to send; empty if it has none. */
function keysOf(one: SendMode, verb: SendMode, second: SendMode, sendKey: SendKey): string {
  const keys = sendKeys(sendKey);
  if (sendKey === "button") return "";
  return one === verb ? formatKeys(keys.send, onMac) : one === second ? formatKeys(keys.second, onMac) : "";
}

function Picker({
  chat,
  once,
  onOnce,
}: {
  chat: Chat;
  once: Profile | null;
  onOnce: (profile: Profile | null) => void;
}) {
  const { t } = useLocalization();
  const { page, fresh } = chat;
  const defaultProfile = useQuery(settingsQuery).data?.default_profile ?? "auto";
  const choose = (profile: Profile) => {
    if (fresh !== null) chat.change({ ...fresh, profile });
    else if (page === undefined) onOnce(profile); // it is still being created: the next message carries the profile
    if (page !== undefined) void storeProfile(page, profile, t);
  };
  return (
    <ProfilePicker
      profile={page?.profile ?? fresh?.profile ?? defaultProfile}
      once={once}
      onProfile={choose}
      onOnce={onOnce}
    />
  );
}
