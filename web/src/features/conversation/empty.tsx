// The page of a new chat: examples to start with. Each example shows a feature of the app.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useLayoutEffect, useRef } from "react";
import { sendMessage } from "../../api/outbox";
import { newIdentifier } from "../../api/identifier";
import { sessionQuery } from "../../api/queries";
import { endNewChat, focusComposer, newChat } from "../composer";
import { Icon, type IconName } from "../../controls/icon";
import { useLocalization } from "../../messages/localization";
import type { MessageKey } from "../../messages/catalog";
import bird from "../../style/bird.svg";

const examples: readonly { icon: IconName; title: MessageKey; text: MessageKey }[] = [
  { icon: "spark", title: "transcript.example.about", text: "transcript.example.about.text" },
  { icon: "tool", title: "transcript.example.sum", text: "transcript.example.sum.text" },
  { icon: "edit", title: "transcript.example.code", text: "transcript.example.code.text" },
  { icon: "thought", title: "transcript.example.think", text: "transcript.example.think.text" },
];

export function NewChatExamples() {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    const examples = list.current;
    // The examples disappear when the chat is stored; a focused example passes the focus on.
    return () => void (examples?.contains(document.activeElement) && focusComposer());
  }, []);
  const begin = (text: string) => {
    const id = newIdentifier("conv");
    const { id: unused, temporary = false } = newChat();
    sendMessage({ conversationID: id, text, ifBusy: "reject", newConversation: { profile: null, temporary } });
    if (temporary) endNewChat(unused); // the choice applies to one chat
    void navigate({ to: "/c/$conversation", params: { conversation: id } });
  };
  return (
    <div className="min-h-0 grow overflow-y-auto">
      <div className="mx-auto flex min-h-full w-full max-w-(--width-prose) flex-col justify-center px-4 py-8">
        <img src={bird} alt="" width={120} height={84} className="-ms-2 mb-4 short:hidden" />
        <p className="text-soft">{t("transcript.empty.hello", { name: session?.account.display_name ?? "" })}</p>
        <h1 className="text-2xl font-semibold text-balance">{t("transcript.empty.title")}</h1>
        <p className="mt-2 max-w-prose text-soft">{t("transcript.empty.text")}</p>
        <ul ref={list} className="mt-8 grid gap-x-6 gap-y-1 sm:grid-cols-2">
          {examples.map(({ icon, title, text }) => (
            <li key={title}>
              <button
                type="button"
                onClick={() => begin(t(text))}
                className="-mx-3 flex w-[calc(100%+1.5rem)] items-start gap-3 rounded-md px-3 py-2.5 text-start hover:bg-hover"
              >
                <span className="mt-1 text-accent">
                  <Icon name={icon} size={18} />
                </span>
                <span>
                  <span className="block font-medium">{t(title)}</span>
                  <span className="block text-sm text-soft">{t(text)}</span>
                </span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
