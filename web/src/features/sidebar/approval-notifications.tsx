// Notifications of the browser about calls that wait for the user's approval. Rendered only while the user wants them.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { notify } from "../../controls/notification";
import { useLocalization } from "../../messages/localization";
import { useApprovals } from "../../turn/use-approvals";

/** current: the conversation that the page shows; null: none. */
export function ApprovalNotifications({ current }: { current: string | null }) {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const waiting = useApprovals()?.data;
  /** The notifications by approval; null: the user sees it, or it waited before. null in place of the map: not loaded. */
  const known = useRef<ReadonlyMap<string, Notification | null> | null>(null);
  useEffect(() => {
    if (waiting === undefined) return;
    const before = known.current;
    const next = new Map<string, Notification | null>();
    for (const { approval_id: id, conversation_id: conversation, action } of waiting) {
      const seen = before === null || (conversation === current && document.visibilityState === "visible");
      const open = () => void navigate({ to: "/c/$conversation", params: { conversation } });
      next.set(
        id,
        before?.get(id) ??
          (seen || before.has(id)
            ? null
            : notify(id, t("transcript.activity.requires_action"), action, `/c/${conversation}`, open)),
      );
    }
    for (const [id, notification] of before ?? []) if (!next.has(id)) notification?.close();
    known.current = next;
  }, [waiting, current, navigate, t]);
  return null;
}
