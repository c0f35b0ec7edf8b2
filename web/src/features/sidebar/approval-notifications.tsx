// Notifications of the browser about calls that wait for the user's approval. Rendered only while the user wants them.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { notify } from "../../controls/notification";
import { useLocalization } from "../../messages/localization";
import { useApprovals } from "../../turn/use-approvals";

export function ApprovalNotifications() {
  const { t } = useLocalization();
  const navigate = useNavigate();
  const waiting = useApprovals()?.data;
  /** The notifications by approval; null: it waited before. null in place of the map: not loaded. */
  const known = useRef<ReadonlyMap<string, Promise<Notification | null> | null> | null>(null);
  useEffect(() => {
    if (waiting === undefined) return;
    const before = known.current;
    const next = new Map<string, Promise<Notification | null> | null>();
    for (const { approval_id: id, conversation_id: conversation, action } of waiting) {
      const open = () => void navigate({ to: "/c/$conversation", params: { conversation } });
      next.set(
        id,
        before === null || before.has(id)
          ? (before?.get(id) ?? null)
          : notify(id, t("transcript.activity.requires_action"), action, conversation, open),
      );
    }
    for (const [id, shown] of before ?? [])
      if (!next.has(id)) void shown?.then((notification) => notification?.close());
    known.current = next;
  }, [waiting, navigate, t]);
  return null;
}
