// The items of the menu of a message. They are loaded with the first of these menus.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useKnownConversation } from "../../api/known-conversation";
import { noticeSignOut } from "../../api/session-state";
import { onTouchScreen } from "../../controls/media";
import { MenuItem, MenuLine } from "../../controls/menu";
import { toast } from "../../controls/toast";
import type { Message } from "../../generated/events";
import { actingMessages } from "../../messages/acting";
import { branchingMessages } from "../../messages/branching";
import { useLocalization, useMessages } from "../../messages/localization";
import { copyText } from "../../parts/export-text";
import { toPlainText } from "../../parts/plain";
import { addToDraft, focusToWrite } from "../composer";
import { useSharing } from "../sharing";
import { copyBranch, copyProblemOf } from "./branches";
import { useConversationContext } from "./conversation-context";
import { markdownOf, textOf } from "./markdown-of";
import { quoteOf, selectedIn } from "./quote";
import { readAloud, readsAloud, stopReading, useReading } from "./read-aloud";
import { isFinal } from "./rows";

export interface MessageItemsProps {
  message: Message;
  /** Writes the answer again with a profile; null: it cannot be. */
  onRegenerate: ((profile: "balanced" | "deep_reasoning" | "coding") => void) | null;
  /** Sets what is done once the menu is closed, in place of the return of the focus to its button. */
  onceClosed: (next: () => void) => void;
  /** Opens the dialog that saves a text as a prompt. */
  onSavePrompt: (text: string) => void;
}

/** Rendered only in an open menu. */
export function MessageItems({ message, onRegenerate, onceClosed, onSavePrompt }: MessageItemsProps) {
  const { t, language } = useLocalization();
  const acting = useMessages(actingMessages);
  const branching = useMessages(branchingMessages);
  const { id } = useConversationContext();
  const conversation = useKnownConversation(id);
  const navigate = useNavigate();
  const reading = useReading((store) => store.message === message.message_id);
  // The selection when the menu was opened.
  const [selected] = useState(() => selectedIn(message.message_id));
  const own = message.role === "user";
  const plain = () => (own ? textOf(message) : toPlainText(markdownOf(message.parts)));
  const copyPlain = async () => {
    const done = await copyText(plain());
    toast(t(done ? "transcript.copied" : "transcript.copy_refused"), done ? { stays: 2_500 } : { kind: "problem" });
  };
  const quote = () => {
    addToDraft(id, quoteOf(selected === "" ? plain() : selected));
    onceClosed(focusToWrite);
  };
  const branch = async () => {
    const { pathname } = window.location;
    try {
      const { conversation_id } = await copyBranch(id, message.message_id);
      // A page that was opened meanwhile stays open.
      if (window.location.pathname !== pathname) return;
      await navigate({ to: "/c/$conversation", params: { conversation: conversation_id } });
      toast(branching("branching.copied"), { stays: 4_000 });
    } catch (refusal) {
      noticeSignOut(refusal);
      toast(branching(copyProblemOf(refusal)), { kind: "problem" });
    }
  };
  return (
    <>
      {!own && (
        <MenuItem icon="copy" onSelect={() => void copyPlain()}>
          {acting("acting.copy_plain")}
        </MenuItem>
      )}
      <MenuItem icon="chat" onSelect={quote}>
        {acting(selected === "" ? "acting.quote" : "acting.quote_selection")}
      </MenuItem>
      {own && (
        <MenuItem icon="fileText" onSelect={() => onceClosed(() => onSavePrompt(textOf(message)))}>
          {acting("acting.save_prompt")}
        </MenuItem>
      )}
      {own && onTouchScreen() && (
        <MenuItem icon="fileText" onSelect={() => onceClosed(() => selectText(message.message_id))}>
          {acting("acting.select")}
        </MenuItem>
      )}
      {readsAloud && (
        <MenuItem
          icon={reading ? "close" : "music"}
          onSelect={() => (reading ? stopReading() : readAloud(message.message_id, plain(), language))}
        >
          {acting(reading ? "acting.stop" : "acting.read")}
        </MenuItem>
      )}
      {isFinal(message) && (
        <MenuItem icon="route" onSelect={() => void branch()}>
          {acting("acting.branch")}
        </MenuItem>
      )}
      {isFinal(message) && conversation !== undefined && !conversation.temporary && (
        <MenuItem icon="link" onSelect={() => useSharing.setState({ conversation, message: message.message_id })}>
          {acting("acting.share")}
        </MenuItem>
      )}
      {onRegenerate !== null && (
        <>
          <MenuLine />
          {(["balanced", "deep_reasoning", "coding"] as const).map((profile) => (
            <MenuItem key={profile} icon="retry" onSelect={() => onRegenerate(profile)}>
              {t("transcript.regenerate_with", { profile: t(`transcript.profile.${profile}`) })}
            </MenuItem>
          ))}
        </>
      )}
    </>
  );
}

/** Selects the text of an own message, which touch screens do not select because a long press on it opens the menu. */
function selectText(message: string): void {
  const text = document.querySelector<HTMLElement>(`[data-row="${CSS.escape(message)}"] [data-bubble]`);
  if (text === null) return;
  text.style.userSelect = "text";
  getSelection()?.selectAllChildren(text);
}
