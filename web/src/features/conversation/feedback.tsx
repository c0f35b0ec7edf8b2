// The rating of the latest answer: two buttons, and a dialog for reasons and a comment. A rating is displayed at once
// and reverted if the service refuses it.
import { useState } from "react";
import { api, body, Refusal, type Schemas } from "../../api/client";
import { cacheFeedback, refetchInAllTabs } from "../../api/queries";
import { noticeSignOut } from "../../api/session-state";
import { IconButton } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { toast } from "../../controls/toast";
import type { Message } from "../../generated/events";
import { useLocalization, type Localization } from "../../messages/localization";

export type Feedback = Schemas["Feedback"];

const FeedbackDialog = deferred(() => import("./feedback-dialog").then((m) => m.FeedbackDialog));

/** Reports whether the service accepts feedback on an answer, if it is the newest of its branch. */
export const isEligible = (message: Message): boolean =>
  message.role === "assistant" && (message.status === "complete" || message.status === "incomplete");

export function FeedbackButtons({ message }: { message: Message }) {
  const { t } = useLocalization();
  const [explaining, setExplaining] = useState<Feedback | null>(null);
  const feedback = message.feedback;
  const rate = (rating: Feedback["rating"]) => {
    if (feedback?.rating === rating) return void storeFeedback(message, null, t);
    const rated = { rating, reasons: [], comment: "" };
    void storeFeedback(message, rated, t).then((stored) => {
      if (!stored) return;
      toast(t("transcript.feedback.thanks"), {
        action: { label: t("transcript.feedback.explain"), run: () => setExplaining(rated) },
      });
    });
  };
  return (
    <>
      {(["up", "down"] as const).map((rating) => (
        <IconButton
          key={rating}
          size="small"
          icon={rating === "up" ? "thumbUp" : "thumbDown"}
          label={t(`transcript.feedback.${rating}`)}
          aria-pressed={feedback?.rating === rating}
          className="aria-pressed:bg-hover aria-pressed:text-accent"
          onClick={() => rate(rating)}
        />
      ))}
      {explaining !== null && (
        <FeedbackDialog
          feedback={explaining}
          onClose={() => setExplaining(null)}
          onSave={(explained) => {
            setExplaining(null);
            void storeFeedback(message, explained, t);
          }}
        />
      )}
    </>
  );
}

/** Stores feedback, or removes it (null). Returns whether that succeeded; shows why, if not. */
async function storeFeedback(message: Message, feedback: Feedback | null, t: Localization["t"]): Promise<boolean> {
  const { conversation_id: id, message_id, feedback: before } = message;
  const path = { conversation_id: id };
  cacheFeedback(id, message_id, feedback);
  try {
    await (feedback === null
      ? api.DELETE("/conversations/{conversation_id}/feedback", { params: { path, query: { message_id } } })
      : body(
          api.PUT("/conversations/{conversation_id}/feedback", { params: { path }, body: { message_id, ...feedback } }),
        ));
    return true;
  } catch (refusal) {
    noticeSignOut(refusal);
    cacheFeedback(id, message_id, before);
    const newer = refusal instanceof Refusal && refusal.status === 409;
    toast(t(newer ? "transcript.feedback.newer" : "transcript.feedback.failed"), {
      kind: "problem",
      ...(newer
        ? {}
        : { action: { label: t("transcript.retry"), run: () => void storeFeedback(message, feedback, t) } }),
    });
    return false;
  } finally {
    void refetchInAllTabs("messages", id);
  }
}
