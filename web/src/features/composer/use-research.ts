// The research task that the composer starts in place of a turn, if the user has chosen that.
import { useNavigate } from "@tanstack/react-router";
import { maxResearchFiles, maxResearchQuestion } from "../../generated/limits";
import { reportPartFailure } from "../../controls/deferred";
import { useLocalization } from "../../messages/localization";
import { idle, isUsable, loadStart, useResearchMode } from "../research";
import { endNewChat } from "./new-chat";
import { drafts } from "./page-drafts";
import type { Chat } from "./use-chat";
import type { SendState } from "./use-send";

interface ResearchState {
  /** Whether the next send starts a task. */
  on: boolean;
  /** Whether a request is in flight. */
  sending: boolean;
  canSend: boolean;
  submit(): void;
}

export function useResearch(chat: Chat, way: SendState, onStarted: () => void): ResearchState {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const { id } = chat;
  const choice = useResearchMode(({ choices }) => choices[id]);
  const { sending } = useResearchMode(({ starting }) => starting[id] ?? idle);
  const { text, files } = chat.draft;
  const canSend =
    choice !== undefined &&
    choice.places.length > 0 &&
    isUsable(choice.budget) &&
    text.trim() !== "" &&
    way.canSend &&
    way.length <= maxResearchQuestion &&
    files.length <= maxResearchFiles &&
    !sending;
  const submit = async () => {
    if (!canSend) return;
    const module = await loadStart().catch(() => null);
    if (module === null) return reportPartFailure(t);
    if (!(await module.startResearch(id, text.trim(), files, () => drafts.createConversation(id)))) return;
    drafts.empty(id, { text, files });
    onStarted();
    if (chat.fresh === null && chat.project === undefined) return;
    const { pathname } = location;
    endNewChat(id, chat.project);
    if (pathname === "/" || pathname === `/p/${chat.project}`)
      void navigate({ to: "/c/$conversation", params: { conversation: id } });
  };
  return { on: choice !== undefined, sending, canSend, submit: () => void submit() };
}
