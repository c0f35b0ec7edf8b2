// The dialog for the reasons of a rating and a comment.
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { maxFeedbackComment, maxFeedbackReasons } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { explainingMessages } from "../../messages/explaining";
import { useMessages } from "../../messages/localization";

type Feedback = Schemas["Feedback"];

const reasons = {
  up: ["accurate", "complete", "clear", "followed_instructions", "other"],
  down: ["inaccurate", "incomplete", "unclear", "ignored_instructions", "outdated", "unsafe", "other"],
} as const;

interface FeedbackDialogProps {
  feedback: Feedback;
  onClose: () => void;
  onSave: (feedback: Feedback) => void;
}

export function FeedbackDialog({ feedback, onClose, onSave }: FeedbackDialogProps) {
  const t = useMessages(explainingMessages);
  const [chosen, setChosen] = useState<ReadonlySet<Feedback["reasons"][number]>>(new Set(feedback.reasons));
  const [comment, setComment] = useState(feedback.comment);
  const toggle = (reason: Feedback["reasons"][number]) =>
    setChosen((before) => {
      const next = new Set(before);
      if (!next.delete(reason) && next.size < maxFeedbackReasons) next.add(reason);
      return next;
    });
  return (
    <Dialog title={t(`explaining.why_${feedback.rating}`)} description={t("explaining.hint")} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          onSave({ rating: feedback.rating, reasons: [...chosen], comment: comment.trim() });
        }}
      >
        <fieldset className="flex flex-wrap gap-2">
          <legend className="sr-only">{t("explaining.reasons")}</legend>
          {reasons[feedback.rating].map((reason) => (
            <label
              key={reason}
              className="flex min-h-8 cursor-pointer items-center rounded-md border border-line px-3 text-sm text-soft hover:bg-hover has-checked:border-edge has-checked:bg-sunken has-checked:font-medium has-checked:text-ink has-focus-visible:outline-2 has-focus-visible:outline-accent pointer-coarse:min-h-11"
            >
              <input type="checkbox" className="sr-only" checked={chosen.has(reason)} onChange={() => toggle(reason)} />
              {t(`explaining.reason.${reason}`)}
            </label>
          ))}
        </fieldset>
        <label className="flex flex-col gap-1.5 text-sm font-medium">
          {t("explaining.comment")}
          <textarea
            dir="auto"
            rows={3}
            maxLength={maxFeedbackComment}
            value={comment}
            onChange={(event) => setComment(event.target.value)}
            className="rounded-md border border-edge bg-raised px-3 py-2 text-base font-normal md:text-sm"
          />
        </label>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("transcript.cancel")}</Button>
          <Button type="submit" look="primary">
            {t("explaining.send")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
