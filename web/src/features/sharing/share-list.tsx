// A list of shares, each with a button to revoke it: those of a conversation, or of the account.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { revokeShare, sharesQuery, type Share } from "./shares";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { ShowMore } from "../../controls/show-more";
import { useLocalization, useMessages } from "../../messages/localization";
import { sharingMessages } from "../../messages/sharing";

interface ShareListProps {
  /** The conversation whose shares are listed; null: all, each with a link to its conversation. */
  conversation: string | null;
  onRevoked?: (share: Share) => void;
}

export function ShareList({ conversation, onRevoked }: ShareListProps) {
  const t = useMessages(sharingMessages);
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    sharesQuery(conversation),
  );
  const [confirming, setConfirming] = useState<Share | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const [outcome, setOutcome] = useState<"revoked" | "failed" | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const revoked = useRef(false);
  useEffect(() => {
    // The pressed button was removed with its row; the list takes the focus.
    const focused = document.activeElement;
    if (revoked.current && (focused === document.body || focused?.getAttribute("role") === "dialog"))
      list.current?.focus();
    revoked.current = false;
  }, [data]);
  const revoke = async (share: Share) => {
    setConfirming(null);
    setBusy(share.share_id);
    setOutcome(null);
    try {
      await revokeShare(share.share_id);
      revoked.current = true;
      setOutcome("revoked");
      onRevoked?.(share);
    } catch (refusal) {
      noticeSignOut(refusal);
      setOutcome("failed");
    } finally {
      setBusy(null);
    }
  };
  if (isError && data === undefined) return <NotLoaded again={refetch}>{t("shares.not_loaded")}</NotLoaded>;
  if (data === undefined) return null;
  // A share that was created between the loading of two pages may be on both.
  const shares = [...new Map(data.pages.flatMap((page) => page.data).map((one) => [one.share_id, one])).values()];
  return (
    <div ref={list} tabIndex={-1} className="outline-none">
      {shares.length === 0 ? (
        <p className="py-3 text-sm text-soft">{t("shares.empty")}</p>
      ) : (
        <ul aria-label={t("pages.shares.title")} className="divide-y divide-line">
          {shares.map((share) => (
            <Row
              key={share.share_id}
              share={share}
              titled={conversation === null}
              busy={busy === share.share_id}
              onRevoke={() => setConfirming(share)}
            />
          ))}
        </ul>
      )}
      <ShowMore label={t("pages.archive.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
      <div role="status" className={outcome === "failed" ? "pb-3" : "sr-only"}>
        {outcome === "failed" ? (
          <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
            <Icon name="warning" size={16} />
            {t("shares.not_revoked")}
          </p>
        ) : (
          outcome === "revoked" && t("shares.revoked")
        )}
      </div>
      {confirming !== null && (
        <Dialog
          title={t("shares.revoke_title")}
          description={t("shares.revoke_hint", { title: confirming.title || t("pages.untitled") })}
          nested={conversation !== null}
          onClose={() => setConfirming(null)}
        >
          <div className="flex justify-end gap-2">
            <Button data-autofocus="" onClick={() => setConfirming(null)}>
              {t("pages.cancel")}
            </Button>
            <Button look="danger" icon="trash" onClick={() => void revoke(confirming)}>
              {t("shares.revoke")}
            </Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

interface RowProps {
  share: Share;
  titled: boolean;
  busy: boolean;
  onRevoke: () => void;
}

function Row({ share, titled, busy, onRevoke }: RowProps) {
  const t = useMessages(sharingMessages);
  const { intl } = useLocalization();
  const title = share.title || t("pages.untitled");
  const created = intl.formatDate(share.created_at, { dateStyle: "medium", timeStyle: "short" });
  return (
    <li className="flex items-center gap-3 py-2">
      <span className="flex min-w-0 grow flex-col text-sm">
        {titled && (
          <Link
            to="/c/$conversation"
            params={{ conversation: share.conversation_id }}
            dir="auto"
            className="truncate font-medium text-as-parent hover:underline"
          >
            {title}
          </Link>
        )}
        <span className="flex flex-wrap gap-x-3 text-soft">
          <span>{t("pages.shares.created", { when: created })}</span>
          <span>{t("shares.expires", { when: intl.formatDate(share.expires_at, { dateStyle: "medium" }) })}</span>
          <span>{t("shares.opened", { count: share.open_count })}</span>
          {share.file_ids.length > 0 && <span>{t("share.attached", { count: share.file_ids.length })}</span>}
          {share.artifact_ids.length > 0 && <span>{t("artifacts.count", { count: share.artifact_ids.length })}</span>}
        </span>
      </span>
      <Button
        aria-disabled={busy}
        className="shrink-0 aria-disabled:text-faint"
        aria-label={t("shares.revoke_one", { title, when: created })}
        onClick={() => !busy && onRevoke()}
      >
        {t("shares.revoke")}
      </Button>
    </li>
  );
}
