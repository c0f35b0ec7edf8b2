// The note below the field while the answer waits for the user's approval of a tool call.
import { Icon } from "../../controls/icon";
import { useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";

/** Says that the answer waits for the user, and leads to the request, which may be out of view. */
export function ApprovalNote() {
  const t = useMessages(writingMessages);
  return (
    <p className="flex flex-wrap items-center gap-x-2 text-warning">
      <Icon name="clock" size={14} />
      <span>{t("transcript.activity.requires_action")}</span>
      <button
        type="button"
        onClick={focusPendingApproval}
        className="min-h-6 rounded-sm px-1 text-accent underline decoration-1 underline-offset-2 pointer-coarse:min-h-11"
      >
        {t("composer.approval.show")}
      </button>
    </p>
  );
}

/** Focuses the first request for approval. In a long transcript that is scrolled up, its row is rendered at the end only. */
function focusPendingApproval(): void {
  const find = () => document.querySelector<HTMLElement>('[data-approval="pending"]');
  if (find() === null) {
    const scroller = document.querySelector("[data-scroll]");
    scroller?.scrollTo(0, scroller.scrollHeight);
  }
  requestAnimationFrame(() => requestAnimationFrame(() => find()?.focus()));
}
