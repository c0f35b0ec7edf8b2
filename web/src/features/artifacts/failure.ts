// Why an artifact could not be changed, as a sentence.
import { Refusal } from "../../api/client";
import { failureOf, failureText } from "../../api/outbox-message";
import type { Localization } from "../../messages/localization";

export function failureMessage(error: unknown, t: Localization["t"]): string {
  if (!(error instanceof Refusal) || error.outcomeUnknown) return t("artifacts.failed.no_response");
  if (error.code === "stale_version") return t("artifacts.failed.stale");
  return t("artifacts.failed", { detail: failureText(failureOf(error, 0)) });
}
