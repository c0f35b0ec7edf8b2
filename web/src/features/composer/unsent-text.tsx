// What was written for a conversation before it turned out not to exist, on the page that says so.
import { useNavigate } from "@tanstack/react-router";
import { Button } from "../../controls/button";
import { useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";
import { CopyButton } from "../../parts/copy-button";
import { copyText } from "../../parts/export-text";
import { focusComposer } from "./composer-requests";
import { creationOf, newChat } from "./new-chat";
import { drafts, useDrafts } from "./page-drafts";

export function UnsentText({ conversation }: { conversation: string }) {
  const t = useMessages(writingMessages);
  const navigate = useNavigate();
  const draft = useDrafts(({ byID }) => byID[conversation]);
  const text = draft?.text.trim() ?? "";
  if (draft === undefined || text === "") return null;
  const move = () => {
    const chat = newChat();
    drafts.open(chat.id, creationOf(chat));
    drafts.restoreText(chat.id, draft.text);
    if (draft.files.length > 0) drafts.attach(chat.id, draft.files);
    drafts.empty(conversation, draft);
    void navigate({ to: "/" }).then(focusComposer);
  };
  return (
    <section aria-labelledby="unsent-text" className="mt-6 rounded-lg border border-line bg-raised p-4">
      <div className="flex items-center justify-between gap-2">
        <h2 id="unsent-text" className="font-medium">
          {t("writing.unsent.title")}
        </h2>
        <CopyButton label={t("writing.unsent.copy")} copy={() => copyText(draft.text)} />
      </div>
      <p
        dir="auto"
        className="mt-2 max-h-[30dvh] overflow-y-auto text-sm wrap-anywhere whitespace-pre-wrap"
        tabIndex={0}
      >
        {draft.text}
      </p>
      <Button className="mt-4" icon="add" onClick={move}>
        {t("writing.unsent.move")}
      </Button>
    </section>
  );
}
