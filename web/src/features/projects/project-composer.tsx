// The field that starts a conversation in a project. The conversation exists before its page is opened, so that the page shows the
// name of the project at once. Files and tools are added there.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { api, body } from "../../api/client";
import { newIdentifier } from "../../api/identifier";
import { sendMessage } from "../../api/outbox";
import { projectChanged } from "../../api/projects";
import { conversationQuery, queryClient, sessionQuery } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { Button, IconButton } from "../../controls/button";
import { toast } from "../../controls/toast";
import { useSendKey } from "../../keys/send-keys";
import { focusComposer, PromptMention, WritingField } from "../composer";
import { useLocalization } from "../../messages/localization";

/** What is typed for a project survives that its page is left or loaded again. */
const storageKey = (project: string): string =>
  `turnstone-project-text/${queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? ""}/${project}`;

function storedText(project: string): string {
  try {
    return sessionStorage.getItem(storageKey(project)) ?? "";
  } catch {
    return ""; // the storage cannot be read
  }
}

function storeText(project: string, text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(storageKey(project));
    else sessionStorage.setItem(storageKey(project), text);
  } catch {
    // The storage is full or forbidden; the text is kept while the page is open.
  }
}

export function ProjectComposer({ project }: { project: string }) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const [text, setText] = useState(() => storedText(project));
  useEffect(() => storeText(project, text), [project, text]);
  const [starting, setStarting] = useState(false);
  // A repeated request creates no second conversation.
  const key = useRef(newIdentifier("conv"));
  const written = text.trim();
  const sendKey = useSendKey();
  const field = useRef<HTMLTextAreaElement>(null);
  const start = async () => {
    if (starting) return;
    setStarting(true);
    try {
      const { conversation_id: id } = await body(
        api.POST("/projects/{project_id}/conversations", {
          params: { path: { project_id: project }, header: { "Idempotency-Key": key.current } },
          body: {},
        }),
      );
      await queryClient.fetchQuery(conversationQuery(id)).catch(() => {}); // its page loads it otherwise
      if (written !== "") sendMessage({ conversationID: id, text: written, ifBusy: "reject" });
      if (field.current?.value === text) storeText(project, ""); // what was typed meanwhile stays
      await navigate({ to: "/c/$conversation", params: { conversation: id } });
      focusComposer();
    } catch (refusal) {
      noticeSignOut(refusal);
      toast(t("pages.projects.failed"), { kind: "problem" });
      setStarting(false);
    } finally {
      projectChanged();
    }
  };
  return (
    <form
      aria-label={t("composer.form")}
      onSubmit={(event) => {
        event.preventDefault();
        if (written !== "") void start();
      }}
      className="flex flex-col gap-3"
    >
      <div className="relative flex items-end rounded-lg border border-line bg-raised shadow-rest in-data-keyboard:has-[textarea:focus]:outline-2 in-data-keyboard:has-[textarea:focus]:outline-accent has-[textarea:focus]:border-edge">
        {/[/／]/.test(text) && <PromptMention project={project} field={field} side="below" />}
        <WritingField
          field={field}
          aria-label={t("composer.label")}
          placeholder={t("composer.placeholder")}
          value={text}
          sendKey={sendKey}
          onText={setText}
          onAction={(action) => {
            if (action === "edit-last") return false;
            if (written !== "") void start();
            return true;
          }}
        />
        <IconButton
          type="submit"
          icon="arrowUp"
          className="m-2"
          label={t("composer.send")}
          disabled={written === "" || starting}
        />
      </div>
      {written === "" && (
        <Button icon="add" className="w-fit" disabled={starting} onClick={() => void start()}>
          {t("pages.new")}
        </Button>
      )}
    </form>
  );
}
