// The devices that are signed in to the account, and how to end that.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { notice } from "../api/access";
import { api, Refusal, type Device } from "../api/client";
import { changed, devicesQuery } from "../api/queries";
import { Button } from "../controls/button";
import { Icon } from "../controls/icon";
import { toast } from "../controls/toast";
import { useSpeech } from "../words/speech";
import { browserOf } from "./browser";
import { Prove, useProof } from "./prove";

export function Devices() {
  const { say } = useSpeech();
  const { data, isError, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(devicesQuery);
  const [busy, setBusy] = useState<string | null>(null);
  const proof = useProof();
  const list = useRef<HTMLUListElement>(null);
  const ended = useRef(false);
  useEffect(() => {
    // The button that was pressed went with its device.
    if (ended.current && document.activeElement === document.body) list.current?.focus();
    ended.current = false;
  }, [data]);
  const run = (what: string, done: string, request: () => Promise<unknown>) => {
    if (busy !== null) return;
    setBusy(what);
    proof
      .withProof(async () => {
        await request();
        ended.current = true;
        toast(done);
      })
      .catch((refusal: unknown) => {
        notice(refusal);
        // Gone already is what was asked for.
        if (!(refusal instanceof Refusal) || refusal.status !== 404) toast(say("rooms.devices.failed"), { kind: "problem" });
      })
      .finally(() => {
        setBusy(null);
        void changed("devices");
      });
  };
  if (isError && data === undefined) {
    return (
      <Button icon="retry" className="w-fit" onClick={() => void refetch()}>
        {say("rooms.devices.unread")}
      </Button>
    );
  }
  // A device that was used between two pages may be in both.
  const listed = new Map(data?.pages.flatMap((page) => page.data).map((device) => [device.session_id, device]));
  const devices = [...listed.values()].toSorted((a, b) => Number(b.current) - Number(a.current)); // then the last used first
  return (
    <>
      <ul ref={list} tabIndex={-1} aria-label={say("rooms.devices.title")} className="flex flex-col gap-4 outline-none">
        {devices.map((device) => (
          <Row key={device.session_id} device={device} busy={busy !== null} onEnd={() => run(device.session_id, say("rooms.devices.ended"), () => api.DELETE("/auth/sessions/{session_id}", { params: { path: { session_id: device.session_id } } }))} />
        ))}
      </ul>
      {hasNextPage && (
        <Button className="w-fit aria-disabled:text-faint" aria-disabled={isFetchingNextPage} onClick={() => !isFetchingNextPage && void fetchNextPage()}>
          {say("rooms.devices.more")}
        </Button>
      )}
      {devices.length > 1 && (
        <Button className="w-fit aria-disabled:text-faint" aria-disabled={busy !== null} onClick={() => run("all", say("rooms.devices.others_ended"), () => api.DELETE("/auth/sessions"))}>
          {say("rooms.devices.end_others")}
        </Button>
      )}
      <Prove proof={proof} />
    </>
  );
}

function Row({ device, busy, onEnd }: { device: Device; busy: boolean; onEnd: () => void }) {
  const { say, intl } = useSpeech();
  const { browser, system } = browserOf(device.user_agent);
  const name = browser === null ? say("rooms.devices.unknown") : system === null ? browser : say("rooms.devices.name", { browser, system });
  return (
    <li className="flex items-center gap-3">
      <span className="text-soft">
        <Icon name={system === "iPhone" || system === "Android" ? "phone" : "device"} />
      </span>
      <span className="flex min-w-0 grow flex-col text-sm">
        <span className="font-medium wrap-anywhere">{name}</span>
        <span className="text-soft">
          {device.current ? say("rooms.devices.this") : say("rooms.devices.used", { when: intl.formatDate(device.last_used_at, { dateStyle: "medium", timeStyle: "short" }) })}
        </span>
      </span>
      {!device.current && (
        <Button aria-disabled={busy} className="aria-disabled:text-faint" aria-label={say("rooms.devices.end_one", { name })} onClick={onEnd}>
          {say("rooms.sign_out")}
        </Button>
      )}
    </li>
  );
}
