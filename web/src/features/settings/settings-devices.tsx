// Settings: the devices that are signed in to the account, with buttons to sign them out.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { noticeSignOut } from "../../api/session-state";
import { api, Refusal, type Device } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { devicesQuery } from "./queries";
import { Button } from "../../controls/button";
import { NotLoaded } from "../../controls/not-loaded";
import { Icon } from "../../controls/icon";
import { ShowMore } from "../../controls/show-more";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { parseUserAgent } from "./user-agent";
import { ReauthenticationDialog, useReauthentication } from "../sign-in";

export function Devices() {
  const t = useMessages(settingsMessages);
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(devicesQuery);
  const [busy, setBusy] = useState<string | null>(null);
  const proof = useReauthentication();
  const list = useRef<HTMLUListElement>(null);
  const ended = useRef(false);
  useEffect(() => {
    // The pressed button was removed with its device; the list takes the focus.
    if (ended.current && document.activeElement === document.body) list.current?.focus();
    ended.current = false;
  }, [data]);
  const run = (what: string, done: string, request: () => Promise<unknown>) => {
    if (busy !== null) return;
    setBusy(what);
    proof
      .run(async () => {
        await request();
        ended.current = true;
        toast(done);
      })
      .catch((refusal: unknown) => {
        noticeSignOut(refusal);
        // 404: the session had already ended, which is the intended result.
        if (!(refusal instanceof Refusal) || refusal.status !== 404)
          toast(t("settings.devices.failed"), { kind: "problem" });
      })
      .finally(() => {
        setBusy(null);
        void refetchInAllTabs("devices");
      });
  };
  if (isError && data === undefined) {
    return <NotLoaded again={refetch}>{t("settings.devices.not_loaded")}</NotLoaded>;
  }
  // A device that was used between the loading of two pages may be on both.
  const listed = new Map(data?.pages.flatMap((page) => page.data).map((device) => [device.session_id, device]));
  // This device first, then in the order of the service: last used first.
  const devices = [...listed.values()].toSorted((a, b) => Number(b.current) - Number(a.current));
  return (
    <>
      <ul
        ref={list}
        tabIndex={-1}
        aria-label={t("settings.devices.title")}
        className="divide-y divide-line outline-none"
      >
        {devices.map((device) => (
          <Row
            key={device.session_id}
            device={device}
            busy={busy !== null}
            onEnd={() =>
              run(device.session_id, t("settings.devices.signed_out"), () =>
                api.DELETE("/auth/sessions/{session_id}", { params: { path: { session_id: device.session_id } } }),
              )
            }
          />
        ))}
      </ul>
      <ShowMore label={t("settings.devices.more")} {...{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
      {devices.length > 1 && (
        <Button
          className="my-3 w-fit aria-disabled:text-faint"
          aria-disabled={busy !== null}
          onClick={() => run("all", t("settings.devices.others_signed_out"), () => api.DELETE("/auth/sessions"))}
        >
          {t("settings.devices.sign_out_others")}
        </Button>
      )}
      <ReauthenticationDialog proof={proof} />
    </>
  );
}

function Row({ device, busy, onEnd }: { device: Device; busy: boolean; onEnd: () => void }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const { browser, system } = parseUserAgent(device.user_agent);
  const name =
    browser === null
      ? t("settings.devices.unknown")
      : system === null
        ? browser
        : t("settings.devices.name", { browser, system });
  return (
    <li className="flex items-center gap-3 py-3">
      <span className="text-soft">
        <Icon name={system === "iPhone" || system === "Android" ? "phone" : "device"} />
      </span>
      <span className="flex min-w-0 grow flex-col text-sm">
        <span className="font-medium wrap-anywhere">{name}</span>
        <span className="text-soft">
          {device.current
            ? t("settings.devices.this")
            : t("settings.devices.used", {
                when: intl.formatDate(device.last_used_at, { dateStyle: "medium", timeStyle: "short" }),
              })}
        </span>
      </span>
      {!device.current && (
        <Button
          aria-disabled={busy}
          className="aria-disabled:text-faint"
          aria-label={t("settings.devices.sign_out_one", { name })}
          onClick={onEnd}
        >
          {t("pages.sign_out")}
        </Button>
      )}
    </li>
  );
}
