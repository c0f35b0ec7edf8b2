// Settings: the security log of the account, the newest events first.
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { securityLogQuery } from "./queries";
import { NotLoaded } from "../../controls/not-loaded";
import { ShowMore } from "../../controls/show-more";
import { settingsMessages } from "../../messages/settings";
import { useLocalization, useMessages } from "../../messages/localization";

type Entry = Schemas["SecurityLogEntry"];

/** The events that have a text. A later version of the service may send others, which are shown by their names. */
const events = [
  "account.registered",
  "account.disabled",
  "account.enabled",
  "account.exported",
  "account.erasure_requested",
  "sign_in.succeeded",
  "sign_in.failed",
  "sign_in.ended",
  "sign_in.repeated",
  "session.created",
  "session.rotated",
  "session.revoked",
  "session.others_revoked",
  "session.reused",
  "password.changed",
  "password.reset_requested",
  "password.reset",
  "email.change_requested",
  "email.change_cancelled",
  "email.changed",
  "identity.linked",
  "identity.unlinked",
  "passkey.added",
  "passkey.removed",
  "passkey.used",
  "passkey.counter_repeated",
  "share.created",
  "share.opened",
  "share.revoked",
  "approval.requested",
  "approval.approved",
  "approval.rejected",
  "approval.used",
  "project.deleted",
  "project.restored",
  "project.purged",
  "conversation.deleted",
  "file.infected",
  "integrity.missing_object",
  "request.csrf_refused",
  "request.origin_refused",
  "request.not_found",
] as const;

export function SecurityLog() {
  const t = useMessages(settingsMessages);
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(securityLogQuery);
  if (isError && data === undefined)
    return <NotLoaded again={refetch}>{t("settings.security_log.not_loaded")}</NotLoaded>;
  return (
    <>
      <ul aria-label={t("settings.security_log.title")} className="divide-y divide-line">
        {data?.pages
          .flatMap((page) => page.data ?? [])
          .map((entry) => (
            <Row key={entry.number} entry={entry} />
          ))}
      </ul>
      <ShowMore label={t("settings.security_log.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
    </>
  );
}

function Row({ entry: { event, at, address, count } }: { entry: Entry }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const known = events.find((one) => one === event);
  const when = intl.formatDate(at, { dateStyle: "medium", timeStyle: "short" });
  return (
    <li className="flex flex-col py-3 text-sm">
      <span className="font-medium wrap-anywhere">
        {known === undefined ? event : t(`settings.security_log.${known}`)}
      </span>
      <span className="text-soft">{address === null ? when : t("settings.security_log.from", { when, address })}</span>
      {count > 1 && <span className="text-soft">{t("settings.security_log.times", { count })}</span>}
    </li>
  );
}
