// The page of a new chat: first steps, each of which shows a feature of the app.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useLayoutEffect, useRef, useState } from "react";
import { sendMessage } from "../../api/outbox";
import { newIdentifier } from "../../api/identifier";
import { sessionQuery } from "../../api/queries";
import { addFiles, endNewChat, focusComposer, newChat } from "../composer";
import { NewProjectDialog } from "../projects";
import { Icon, type IconName } from "../../controls/icon";
import { useNoteShown } from "../../controls/later";
import { useLocalization } from "../../messages/localization";
import bird from "../../style/bird.svg";

type Step = "attach" | "leave" | "project";

const steps = [
  { step: "attach", icon: "file" },
  { step: "leave", icon: "spark" },
  { step: "project", icon: "folder" },
] as const satisfies readonly { step: Step; icon: IconName }[];

/** id is that of the new chat, or of a conversation in which nothing was sent. */
export function NewChatExamples({ id }: { id: string }) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const list = useRef<HTMLUListElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const [naming, setNaming] = useState(false);
  useNoteShown();
  useLayoutEffect(() => {
    const shown = list.current;
    // The steps disappear when the chat is stored; a focused step passes the focus on.
    return () => void (shown?.contains(document.activeElement) && focusComposer());
  }, []);
  const begin = (text: string) => {
    const begun = newIdentifier("conv");
    const { id: unused, temporary = false } = newChat();
    sendMessage({ conversationID: begun, text, ifBusy: "reject", newConversation: { profile: null, temporary } });
    if (temporary) endNewChat(unused); // the choice applies to one chat
    void navigate({ to: "/c/$conversation", params: { conversation: begun } });
  };
  const take: Record<Step, () => void> = {
    attach: () => chooser.current?.click(),
    leave: () => begin(t("transcript.step.leave.message")),
    project: () => setNaming(true),
  };
  return (
    <div className="min-h-0 grow overflow-y-auto">
      <div className="mx-auto flex min-h-full w-full max-w-(--width-prose) flex-col justify-center px-4 py-8">
        <img src={bird} alt="" width={120} height={84} className="-ms-2 mb-4 short:hidden" />
        <p className="text-soft">{t("transcript.empty.hello", { name: session?.account.display_name ?? "" })}</p>
        <h1 className="text-2xl font-semibold text-balance">{t("transcript.empty.title")}</h1>
        <p className="mt-2 max-w-prose text-soft">{t("transcript.empty.text")}</p>
        <ul ref={list} className="mt-8 grid gap-x-6 gap-y-1 sm:grid-cols-2">
          {steps.map(({ step, icon }) => (
            <li key={step}>
              <button
                type="button"
                onClick={take[step]}
                className="-mx-3 flex w-[calc(100%+1.5rem)] items-start gap-3 rounded-md px-3 py-2.5 text-start hover:bg-hover"
              >
                <span className="mt-1 text-accent">
                  <Icon name={icon} size={18} />
                </span>
                <span>
                  <span className="block font-medium">{t(`transcript.step.${step}`)}</span>
                  <span className="block text-sm text-soft">{t(`transcript.step.${step}.text`)}</span>
                </span>
              </button>
            </li>
          ))}
        </ul>
        <input
          ref={chooser}
          type="file"
          accept="application/pdf"
          multiple
          hidden
          onChange={({ target }) => {
            void addFiles(id, target.files!);
            target.value = ""; // so that the same file can be chosen again
            focusComposer();
          }}
        />
        {naming && (
          <NewProjectDialog
            onClose={() => setNaming(false)}
            onCreated={({ project_id }) => void navigate({ to: "/p/$project", params: { project: project_id } })}
          />
        )}
      </div>
    </div>
  );
}
