// The notice in place of sending after the conversation was deleted elsewhere: what was written can still be sent, in a
// new conversation.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { attempts } from "../../api/attempt";
import { useAttachments, withNames } from "../../api/attachments";
import { api, body, Refusal } from "../../api/client";
import { newIdentifier } from "../../api/identifier";
import { sendMessage } from "../../api/outbox";
import type { NewConversation } from "../../api/outbox-message";
import { projectChanged } from "../../api/projects";
import { conversationQuery, queryClient } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { toolsOf } from "../../api/tool-choice";
import { Button } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";
import { focusComposer } from "./composer-requests";
import { emptyDraft, isEmpty } from "./draft";
import { creationOf, newChat } from "./new-chat";
import { drafts } from "./page-drafts";
import type { Chat } from "./use-chat";

/** A repeated request creates no second conversation. */
const attempt = attempts();

/** Creates a conversation in a project; null: the project takes none, because it was deleted or archived. */
async function createInProject(project: string, profile: NewConversation["profile"]): Promise<string | null> {
  const content = profile === null ? {} : { profile };
  try {
    const { conversation_id } = await attempt(JSON.stringify([project, content]), (key) =>
      body(
        api.POST("/projects/{project_id}/conversations", {
          params: { path: { project_id: project }, header: { "Idempotency-Key": key } },
          body: content,
        }),
      ),
    );
    projectChanged();
    await queryClient.fetchQuery(conversationQuery(conversation_id)).catch(() => {}); // its page loads it otherwise
    return conversation_id;
  } catch (refusal) {
    if (refusal instanceof Refusal && [404, 409].includes(refusal.status) && refusal.code !== "idempotency_in_progress")
      return null;
    throw refusal;
  }
}

/**
 * Moves what was written to the new chat when the page is left or loaded again, because nothing shows the deleted
 * conversation then. What was written in a temporary one is not kept.
 */
function useMoveOnLeave(id: string, temporary: boolean): void {
  const shown = useRef(false);
  useEffect(() => {
    shown.current = true;
    const move = () => {
      const { text, files } = drafts.state.getState().byID[id] ?? emptyDraft;
      if (temporary || isEmpty({ text, files })) return;
      const chat = newChat();
      drafts.open(chat.id, creationOf(chat));
      if (text.trim() !== "") drafts.restoreText(chat.id, text);
      if (files.length > 0) drafts.attach(chat.id, files);
      drafts.empty(id, { text, files });
    };
    addEventListener("pagehide", move, true); // before the drafts are saved
    return () => {
      removeEventListener("pagehide", move, true);
      shown.current = false;
      queueMicrotask(() => shown.current || move()); // React may only have started the effect again
    };
  }, [id, temporary]);
}

/** canSend: whether the message could be sent if the conversation still existed. */
export function DeletedNotice({ chat, canSend }: { chat: Chat; canSend: boolean }) {
  const { t: app } = useLocalization();
  const t = useMessages(writingMessages);
  const navigate = useNavigate();
  const { id, page, draft } = chat;
  const empty = isEmpty(draft);
  const starting = useRef(false);
  useMoveOnLeave(id, page?.temporary === true);
  const send = (conversation: string, opening?: NewConversation) => {
    const { text, files } = draft;
    const tools = toolsOf(id);
    sendMessage({
      conversationID: conversation,
      text: text.trim(),
      ...(files.length === 0 ? {} : { attachments: withNames(files, useAttachments.getState()) }),
      ifBusy: "reject",
      ...(tools === undefined ? {} : { tools }),
      ...(opening === undefined ? {} : { newConversation: opening }),
    });
    drafts.empty(id, { text, files });
    void navigate({ to: "/c/$conversation", params: { conversation } }).then(focusComposer);
  };
  const start = async () => {
    if (empty) return void navigate({ to: "/" }).then(focusComposer);
    if (starting.current) return;
    starting.current = true;
    const profile = page?.profile ?? null;
    try {
      const inProject = page?.project_id == null ? null : await createInProject(page.project_id, profile);
      if (inProject !== null) send(inProject);
      else send(newIdentifier("conv"), { profile, temporary: page?.temporary ?? false });
    } catch (refusal) {
      noticeSignOut(refusal);
      toast(app("pages.projects.failed"), { kind: "problem" });
    } finally {
      starting.current = false;
    }
  };
  return (
    <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md bg-warning-wash px-3 py-2 text-sm">
      <p role="alert" className="flex min-w-60 grow basis-60 gap-2 text-warning">
        <span className="mt-0.5">
          <Icon name="trash" size={16} />
        </span>
        {t(empty ? "writing.deleted" : "writing.deleted.kept")}
      </p>
      <Button disabled={!empty && !canSend} onClick={() => void start()}>
        {t(empty ? "writing.deleted.new" : "writing.deleted.send")}
      </Button>
    </div>
  );
}
