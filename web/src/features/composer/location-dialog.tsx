// The dialog that shares the location with a conversation. It says what happens to the location before anything is read or sent.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { consentsQuery, locationQuery, removeLocation, shareLocation, type Consent } from "../../api/consents";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { FormError } from "../../controls/form-error";
import { NotLoaded } from "../../controls/not-loaded";
import { toast } from "../../controls/toast";
import { consentMessages, type ConsentMessageKey } from "../../messages/consents";
import { useLocalization, useMessages } from "../../messages/localization";

interface LocationDialogProps {
  conversation: string;
  onClose: () => void;
  returnTo: () => HTMLElement | null | undefined;
}

type Failure = Extract<ConsentMessageKey, `location.failed.${string}`>;

const waits = "aria-disabled:opacity-70";

export function LocationDialog({ conversation, onClose, returnTo }: LocationDialogProps) {
  const t = useMessages(consentMessages);
  const { intl } = useLocalization();
  const consents = useQuery(consentsQuery);
  const { data: shared = null } = useQuery(locationQuery(conversation));
  const [busy, setBusy] = useState<"sharing" | "stopping" | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const open = useRef<AbortController>(null);
  useEffect(() => {
    const controller = (open.current = new AbortController());
    return () => controller.abort();
  }, []);
  const consent = consents.data?.data.find(({ source }) => source === "location");
  const until = (time: string) => intl.formatDate(time, { dateStyle: "medium", timeStyle: "short" });
  const finish = (failed: Failure | null) => {
    if (open.current!.signal.aborted) return; // the user has closed the dialog
    setBusy(null);
    if (failed === null) onClose();
    else setFailure(failed);
  };
  const share = async (agreed: Consent) => {
    if (busy !== null) return;
    setBusy("sharing");
    setFailure(null);
    const stored = await shareLocation(conversation, agreed, open.current!.signal);
    if (typeof stored === "string") return finish(`location.failed.${stored}`);
    if (stored !== null) toast(t("location.done", { time: until(stored.expires_at) }));
    finish(null);
  };
  const stop = async () => {
    if (busy !== null) return;
    setBusy("stopping");
    setFailure(null);
    const removed = await removeLocation(conversation);
    if (removed) toast(t("location.stopped"));
    finish(removed ? null : "location.failed.remove");
  };
  return (
    <Dialog title={t("location.title")} onClose={onClose} returnTo={returnTo}>
      {consent === undefined ? (
        consents.isError ? (
          <NotLoaded again={consents.refetch}>{t("privacy.not_loaded")}</NotLoaded>
        ) : (
          <p role="status">{t("pages.list.loading")}</p>
        )
      ) : (
        <>
          <ul className="flex list-disc flex-col gap-2 ps-5 text-sm text-soft">
            <li>{t("location.about.once")}</li>
            <li>{t(consent.granted && consent.precise ? "location.about.precise" : "location.about.coarse")}</li>
            <li>{t("location.about.until")}</li>
            <li>{t("location.about.tools")}</li>
            <li>{t("location.about.withdraw")}</li>
          </ul>
          <div role="status" className="text-sm">
            {busy === "sharing" ? (
              t("location.finding")
            ) : failure !== null ? (
              <FormError>{t(failure)}</FormError>
            ) : (
              shared !== null && t("location.shared_until", { time: until(shared.expires_at) })
            )}
          </div>
          <div className="flex flex-wrap justify-end gap-2">
            {shared !== null && (
              <Button look="danger" className={waits} aria-disabled={busy !== null} onClick={() => void stop()}>
                {t("location.stop")}
              </Button>
            )}
            <Button
              look="primary"
              data-autofocus=""
              className={waits}
              aria-disabled={busy !== null}
              onClick={() => void share(consent)}
            >
              {t(shared !== null ? "location.update" : consent.granted ? "location.share_now" : "location.allow")}
            </Button>
          </div>
        </>
      )}
    </Dialog>
  );
}
