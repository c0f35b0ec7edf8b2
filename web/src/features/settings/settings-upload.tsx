// Settings: the choice of a file to import, and its upload.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { maxImportSize } from "../../generated/limits";
import {
  cancelUpload,
  forgetOutcome,
  importsQuery,
  isOpen,
  uploadImport,
  useUpload,
  type Upload,
  type UploadOutcome,
} from "./imports";
import { Button } from "../../controls/button";
import { ProgressBar } from "../../controls/progress-bar";
import { settingsMessages, type SettingsText } from "../../messages/settings";
import { useLocalization, useMessages, type Localization } from "../../messages/localization";
import { byteSize } from "../../messages/byte-size";
import { FormError } from "../../controls/form-error";
import { DataRow } from "./data-row";

export function UploadImport() {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const { current, outcome } = useUpload();
  const { data } = useInfiniteQuery(importsQuery);
  const chooser = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  // An account has one open import; the service would refuse another one after its upload.
  const imports = data?.pages.flatMap((page) => page.data) ?? [];
  const busy = current !== null || imports.some(isOpen);
  // The list reports how the import of a stored file has ended.
  const imported = imports.some((one) => one.import_id === outcome?.importID && !isOpen(one));
  useEffect(() => forgetOutcome, []);
  return (
    <DataRow
      title={t("settings.import")}
      hint={t("settings.import.hint", { size: byteSize(intl, maxImportSize) })}
      action={
        <>
          <Button
            ref={button}
            icon="add"
            className="aria-disabled:text-faint"
            aria-disabled={busy}
            onClick={() => !busy && chooser.current?.click()}
          >
            {t("settings.import.choose")}
          </Button>
          <input
            ref={chooser}
            type="file"
            hidden
            accept=".zip,.json,.jsonl,.html,application/zip,application/json,text/html"
            onChange={(event) => {
              const file = event.target.files?.[0];
              if (file !== undefined) void uploadImport(file);
              event.target.value = ""; // so that the same file can be chosen again
            }}
          />
        </>
      }
    >
      {current !== null && (
        <UploadProgress
          upload={current}
          onCancel={() => {
            button.current?.focus(); // the pressed button will be removed
            void cancelUpload();
          }}
        />
      )}
      <div role="status" className="not-empty:mt-3">
        {outcome !== null && !imported && <Outcome outcome={outcome} />}
      </div>
    </DataRow>
  );
}

function UploadProgress({ upload, onCancel }: { upload: Upload; onCancel: () => void }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const { name, sent, size, cancelling } = upload;
  const label = t("settings.import.uploading", { name });
  return (
    <div className="mt-3 flex flex-col gap-2">
      <p className="font-medium wrap-anywhere">{label}</p>
      <ProgressBar label={label} value={sent / size} />
      <div className="flex flex-wrap items-center justify-between gap-2">
        <span className="text-soft tabular-nums">
          {cancelling
            ? t("settings.import.cancelling")
            : t("settings.import.sent", { sent: byteSize(intl, sent), size: byteSize(intl, size) })}
        </span>
        <Button disabled={cancelling} onClick={onCancel}>
          {t("settings.import.cancel_upload")}
        </Button>
      </div>
    </div>
  );
}

function Outcome({ outcome }: { outcome: UploadOutcome }) {
  const t = useMessages(settingsMessages);
  const { intl } = useLocalization();
  const text = textOf(outcome, t, intl);
  return outcome.kind === "stored" || outcome.kind === "cancelled" ? <p>{text}</p> : <FormError>{text}</FormError>;
}

function textOf({ kind, retryAt }: UploadOutcome, t: SettingsText, intl: Localization["intl"]): string {
  if (kind === "too_large") return t("settings.import.outcome.too_large", { size: byteSize(intl, maxImportSize) });
  if (kind === "limited" && retryAt > 0)
    return t("settings.import.outcome.limited_until", {
      when: intl.formatDate(retryAt, { dateStyle: "medium", timeStyle: "short" }),
    });
  return t(`settings.import.outcome.${kind}`);
}
