// The editor of a queued message, in the place of its row. A saved message keeps its place in the queue and its files.
import { useEffect, useEffectEvent, useId, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import type { FollowUp } from "../../api/client";
import { conversationQuery, queryClient } from "../../api/queries";
import { maxInput } from "../../generated/limits";
import { Button } from "../../controls/button";
import { toast } from "../../controls/toast";
import { useSendKey } from "../../keys/send-keys";
import { useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";
import { focusComposer } from "./composer-requests";
import { changeFollowUp } from "./follow-ups";
import { actionOf } from "./keys";
import { drafts } from "./page-drafts";
import { lengthOf } from "./text-limits";

interface EditorProps {
  conversation: string;
  /** The message as it is in the queue now. */
  item: FollowUp;
  onClose(): void;
}

/** The part of a message that another device can change while it is being edited. */
const sameMessage = (a: FollowUp, b: FollowUp): boolean =>
  a.content === b.content && a.attachments.join() === b.attachments.join();

/** Returns the beginning of a text as one line. */
const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
};

export function PendingEditor({ conversation, item, onClose }: EditorProps) {
  const t = useMessages(writingMessages);
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const sendKey = useSendKey();
  const [value, setValue] = useState(item.content);
  const [saving, setSaving] = useState(false);
  // The message that the change is based on; null: the latest, which the user has seen after a conflict.
  const [base, setBase] = useState<FollowUp | null>(item);
  const [opened] = useState(item.content);
  const over = lengthOf(value) - maxInput;
  const ready = over <= 0 && !saving && (value.trim() !== "" || item.attachments.length > 0);
  const rescue = useRescue(conversation, item, value, () => toast(t("writing.queued.gone")));

  const close = () => {
    rescue.current.needed = false;
    onClose();
    focusComposer();
  };
  const save = async () => {
    if (!ready) return;
    if (value.trim() === item.content) return close();
    const { version } = base !== null && !sameMessage(base, item) ? base : item;
    const state = item.state === "held" ? "held" : "queued";
    setSaving(true);
    rescue.current.needed = false; // the message may start with the new text before the response arrives
    const saved = await changeFollowUp(conversation, { ...item, version }, state, t, value.trim());
    if (saved) {
      cacheText(conversation, item.follow_up_id, value.trim());
      return close();
    }
    setSaving(false);
    setBase(null);
    rescue.current.failed();
  };

  useEffect(() => {
    // After a menu that closes has returned the focus to its button.
    const frame = requestAnimationFrame(() => {
      if (document.activeElement !== field.current) {
        field.current?.focus();
        field.current?.setSelectionRange(field.current.value.length, field.current.value.length);
      }
      form.current?.scrollIntoView({ block: "nearest" }); // the list becomes higher with the form, which fits into it
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  useEscape(form, close);

  const conflict = base === null;
  const hint = () => {
    if (!conflict) return t("writing.queued.hint");
    return item.content === opened
      ? t("writing.queued.conflict")
      : t("writing.queued.conflict_text", { text: shortened(item.content) });
  };

  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const { key, keyCode, shiftKey, ctrlKey, metaKey, altKey } = event;
    const keys = { key, keyCode, shiftKey, ctrlKey, metaKey, altKey, isComposing: event.nativeEvent.isComposing };
    const action = actionOf(keys, sendKey, false);
    if (action === null) return;
    event.preventDefault();
    void save();
  };
  return (
    <li className="p-2 text-sm">
      <form
        ref={form}
        data-queued-editor=""
        className="rounded-md border border-line bg-raised p-1 focus-within:border-edge in-data-keyboard:has-[textarea:focus]:outline-2 in-data-keyboard:has-[textarea:focus]:outline-accent"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <textarea
          ref={field}
          dir="auto"
          rows={1}
          aria-label={t("writing.queued.field")}
          aria-invalid={over > 0 || undefined}
          aria-describedby={id}
          value={value}
          onChange={(event) => setValue(event.target.value)}
          onKeyDown={pressed}
          className="block field-sizing-content max-h-[min(25dvh,12rem)] min-h-9 w-full resize-none bg-transparent px-2 py-1.5 text-base wrap-anywhere outline-none"
        />
        <div className="flex flex-wrap items-center justify-end gap-1">
          <p
            id={id}
            role={conflict ? "alert" : undefined}
            className={`min-w-24 grow basis-24 px-2 text-xs wrap-anywhere ${over > 0 ? "text-danger" : conflict ? "text-warning" : "text-faint"}`}
          >
            {over > 0 ? t("composer.length.over", { over }) : hint()}
          </p>
          <Button look="quiet" className="min-h-8" onClick={close}>
            {t("transcript.cancel")}
          </Button>
          <Button look="primary" className="min-h-8" type="submit" disabled={!ready}>
            {t("writing.queued.save")}
          </Button>
        </div>
      </form>
    </li>
  );
}

/** Shows the stored text until the queue is refetched. */
const cacheText = (conversation: string, id: string, content: string): void =>
  void queryClient.setQueryData(
    conversationQuery(conversation).queryKey,
    (page) =>
      page && {
        ...page,
        follow_ups: page.follow_ups.map((one) => (one.follow_up_id === id ? { ...one, content } : one)),
      },
  );

/** Escape closes the editor, and does not stop the answer, wherever the focus is, except in another such editor. */
function useEscape(form: RefObject<HTMLFormElement | null>, onEscape: () => void): void {
  const escape = useEffectEvent(onEscape);
  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
      const other = event.target instanceof Element && event.target.closest("[data-queued-editor]");
      if (other && other !== form.current) return;
      if (document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null) return;
      event.preventDefault();
      escape();
    };
    document.addEventListener("keydown", pressed, true);
    return () => document.removeEventListener("keydown", pressed, true);
  }, [form]);
}

/**
 * Moves a changed text to the composer if the editor disappears before the text is saved: the message has left the
 * queue, another page was opened, or this one was closed or loaded again.
 */
function useRescue(conversation: string, item: FollowUp, value: string, onGone: () => void) {
  const rescue = useRef({ needed: true, mounted: true, run: () => {}, failed: () => {} });
  rescue.current.run = () => {
    if (!rescue.current.needed || value === item.content) return;
    drafts.restoreText(conversation, value);
    const page = queryClient.getQueryData(conversationQuery(conversation).queryKey);
    if (page?.follow_ups.every((one) => one.follow_up_id !== item.follow_up_id) === true) onGone();
  };
  rescue.current.failed = () => {
    rescue.current.needed = true;
    if (!rescue.current.mounted) rescue.current.run();
  };
  useEffect(() => {
    const { current } = rescue;
    current.mounted = true;
    const closed = () => current.run();
    addEventListener("pagehide", closed, true); // before the drafts are saved
    return () => {
      removeEventListener("pagehide", closed, true);
      current.mounted = false;
      current.run();
    };
  }, []);
  return rescue;
}
