// Settings: the identities at OpenID providers with which the account signs in, and the dialog that unlinks one.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, type Schemas } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { identitiesQuery } from "./queries";
import { IconButton } from "../../controls/button";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { ShowMore } from "../../controls/show-more";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { ConfirmedForm, providers, titleOf } from "../sign-in";
import { Section } from "./section";

type Identity = Schemas["Identity"];

/** The name of the provider, or its host if the service does not know it any more. */
function nameOf({ provider, issuer }: Identity): string {
  return provider === null ? new URL(issuer).host : titleOf(provider);
}

/** The section, if the service has providers or the account has identities. */
export function Identities() {
  const t = useMessages(settingsMessages);
  const { data, isError, refetch, ...more } = useInfiniteQuery(identitiesQuery);
  const [opened, setOpened] = useState<Identity | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const unlinked = useRef(false);
  useEffect(() => {
    // The pressed button was removed with its identity; the list takes the focus.
    if (unlinked.current && document.activeElement === document.body) list.current?.focus();
    unlinked.current = false;
  }, [data]);
  const identities = data?.pages.flatMap((page) => page.data ?? []) ?? [];
  if (providers.length === 0 && identities.length === 0) return null;
  return (
    <Section id="identities" title={t("settings.identities.title")} hint={t("settings.identities.hint")}>
      {isError && data === undefined ? (
        <NotLoaded again={refetch}>{t("settings.identities.not_loaded")}</NotLoaded>
      ) : (
        <ul
          ref={list}
          tabIndex={-1}
          aria-label={t("settings.identities.title")}
          className="divide-y divide-line outline-none"
        >
          {identities.map((identity) => (
            <Row key={identity.identity_id} identity={identity} onUnlink={() => setOpened(identity)} />
          ))}
          {data !== undefined && identities.length === 0 && (
            <li className="py-3 text-sm text-soft">{t("settings.identities.empty")}</li>
          )}
        </ul>
      )}
      <ShowMore label={t("settings.identities.more")} {...more} />
      {opened !== null && (
        <ConfirmedForm
          title={t("settings.identities.unlink_title", { name: nameOf(opened) })}
          description={t("settings.identities.unlink_hint")}
          action={t("settings.identities.unlink")}
          look="danger"
          reasons={{ 404: "pages.identities.gone", 409: "pages.identities.last" }}
          run={async () => {
            const path = { identity_id: opened.identity_id };
            await api.DELETE("/account/identities/{identity_id}", { params: { path } });
            await refetchInAllTabs("identities");
            unlinked.current = true;
            toast(t("settings.identities.unlinked"));
          }}
          onClose={() => setOpened(null)}
        />
      )}
    </Section>
  );
}

function Row({ identity, onUnlink }: { identity: Identity; onUnlink: () => void }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const name = nameOf(identity);
  return (
    <li className="flex items-center gap-3 py-3">
      <span className="text-soft">
        <Icon name="link" />
      </span>
      <span className="flex min-w-0 grow flex-col text-sm">
        <span dir="auto" className="font-medium text-as-parent wrap-anywhere">
          {name}
        </span>
        <span className="text-soft">
          {t("settings.identities.linked_on", { when: intl.formatDate(identity.linked_at, { dateStyle: "medium" }) })}
        </span>
        {identity.provider === null && <span className="text-soft">{t("settings.identities.unavailable")}</span>}
      </span>
      <IconButton icon="trash" label={t("settings.identities.unlink")} target={name} onClick={onUnlink} />
    </li>
  );
}
