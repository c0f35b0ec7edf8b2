// Renaming a conversation, in its row of the sidebar or in the page header. The new title is displayed at once and
// reverted if the service refuses it.
import { useRef } from "react";
import { repeatOnCurrent, storeInOrder } from "../../api/change-queue";
import { noticeSignOut } from "../../api/session-state";
import { api, body, type Conversation, Refusal } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { maxTitle } from "../../generated/limits";
import { toast } from "../../controls/toast";
import { useLocalization, type Localization } from "../../messages/localization";
import { editTitle } from "./editing";

/**
 * The titles of requests without a response, by conversation, until a later title is stored: the service may have stored them.
 */
const withoutResponse = new Map<string, Set<string>>();

function putTitle(id: string, title: string, version: number, signal: AbortSignal): Promise<Conversation> {
  return body(
    api.PUT("/conversations/{conversation_id}/title", {
      params: { path: { conversation_id: id }, header: { "If-Match": `"v${version}"` } },
      body: { title },
      keepalive: true, // the new title is displayed already
      signal,
    }),
  ) as Promise<Conversation>;
}

/**
 * Stores a title, also if something else of the conversation has changed in the meantime, or if the service has generated a
 * title. Throws the refusal if a title was set elsewhere: one that is none of the known titles.
 */
const storeTitle = (
  base: Conversation,
  title: string,
  known: readonly string[],
  signal: AbortSignal,
): Promise<Conversation> =>
  putTitle(base.conversation_id, title, base.version, signal).catch((refusal: unknown) =>
    repeatOnCurrent(refusal, async (current) => {
      const isSet = current.title_source !== "auto";
      if (isSet && current.title === title) return current; // by a request whose response was lost
      if (isSet && !known.includes(current.title)) throw refusal;
      return storeTitle(current, title, [...known, current.title], signal);
    }),
  );

/** Stores a title. A title that was set elsewhere in the meantime is kept, and the user is asked. */
export async function rename(before: Conversation, title: string, t: Localization["t"]): Promise<void> {
  const id = before.conversation_id;
  try {
    await storeInOrder(before, { title, title_source: "user" }, (base, signal) =>
      storeTitle(base, title, [before.title, base.title, ...(withoutResponse.get(id) ?? [])], signal),
    );
    withoutResponse.delete(id);
  } catch (refusal) {
    const known = refusal instanceof Refusal ? refusal : null;
    const current = known?.code === "stale_version" ? (known.problem?.current as Conversation | null) : null;
    if (known?.outcomeUnknown) withoutResponse.set(id, (withoutResponse.get(id) ?? new Set()).add(title));
    noticeSignOut(refusal);
    if (current)
      toast(t("pages.rename.conflict", { title: current.title }), {
        kind: "problem",
        action: { label: t("pages.rename.use_mine"), run: () => void rename(current, title, t) },
      });
    else
      toast(t("pages.rename.failed"), {
        kind: "problem",
        action: { label: t("pages.retry"), run: () => void rename(before, title, t) },
      });
  } finally {
    // Also after a failure: the service may have stored the title, or something else of the conversation.
    void refetchInAllTabs("conversations");
    void refetchInAllTabs("conversation", id);
  }
}

/** The editor of a title. Enter and the loss of the focus store the title; Esc does not. */
export function TitleEditor({
  conversation,
  className = "",
  onDone,
}: {
  conversation: Conversation;
  className?: string;
  onDone: (byKey: boolean) => void;
}) {
  const { t } = useLocalization();
  const done = useRef(false);
  const end = (title: string | null, byKey: boolean) => {
    if (done.current) return; // the removal of the editor also blurs it
    done.current = true;
    editTitle(null, "row");
    onDone(byKey);
    const wanted = title?.trim() ?? "";
    if (wanted !== "" && wanted !== conversation.title) void rename(conversation, wanted, t);
  };
  return (
    <input
      autoFocus
      dir="auto"
      aria-label={t("pages.rename.label")}
      maxLength={maxTitle}
      defaultValue={conversation.title}
      onFocus={(event) => event.target.select()}
      onBlur={(event) => end(event.target.value, false)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.nativeEvent.isComposing || event.keyCode === 229) return;
        if (event.key === "Enter") end(event.currentTarget.value, true);
        if (event.key === "Escape") end(null, true);
      }}
      className={`min-w-0 grow rounded-md border border-edge bg-raised px-2 text-base md:text-sm ${className}`}
    />
  );
}
