// Settings: the export of the account, the import of other exports, and the erasure of the account.
import { useState } from "react";
import { downloadExport } from "./account-export";
import { Refusal } from "../../api/client";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { useMessages } from "../../messages/localization";
import { settingsMessages } from "../../messages/settings";
import { DataRow } from "./data-row";
import { ReauthenticationDialog, useReauthentication } from "../sign-in";
import { EraseAccount } from "./settings-erase";
import { ImportList } from "./settings-imports";
import { FormError } from "../../controls/form-error";
import { UploadImport } from "./settings-upload";

export function Data() {
  return (
    <>
      <Export />
      <div>
        <UploadImport />
        <ImportList />
      </div>
      <EraseAccount />
    </>
  );
}

type ExportState = "idle" | "busy" | "started" | "failed" | "unreachable";

function Export() {
  const t = useMessages(settingsMessages);
  const [state, setState] = useState<ExportState>("idle");
  const proof = useReauthentication();
  const start = async () => {
    if (state === "busy") return;
    setState("busy");
    try {
      await proof.run(async () => {
        await downloadExport();
        setState("started");
      });
    } catch (error) {
      noticeSignOut(error);
      setState(error instanceof Refusal && error.status === 0 ? "unreachable" : "failed");
    }
    // Otherwise the user has given up the reauthentication.
    setState((now) => (now === "busy" ? "idle" : now));
  };
  return (
    <DataRow
      title={t("settings.data.export")}
      hint={t("pages.data.export.hint")}
      action={
        <Button
          icon="download"
          className="aria-disabled:text-faint"
          aria-disabled={state === "busy"}
          onClick={() => void start()}
        >
          {t("pages.data.export.do")}
        </Button>
      }
    >
      <div role="status" className="not-empty:mt-3">
        {state === "started" && <p>{t("pages.data.export.started")}</p>}
        {(state === "failed" || state === "unreachable") && <FormError>{t(`pages.data.export.${state}`)}</FormError>}
      </div>
      <ReauthenticationDialog proof={proof} />
    </DataRow>
  );
}
