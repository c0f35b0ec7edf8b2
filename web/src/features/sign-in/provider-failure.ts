// Reports a failed sign-in with a provider once: the reason is removed from the URL, so that a reload does not report
// it again.
import { useEffect } from "react";
import { toast } from "../../controls/toast";
import { useLocalization } from "../../messages/localization";
import { providerFailureIn } from "./provider-errors";

/** The text for the reason; null: no sign-in with a provider failed. */
export let providerFailure: ReturnType<typeof providerFailureIn> = null;

/** Takes the reason out of the URL. */
export function startProviderFailure(): void {
  providerFailure = providerFailureIn(location.search);
  if (providerFailure !== null) history.replaceState(history.state, "", location.pathname);
}

/** Reports the failure in a toast, for a user who is signed in nevertheless. */
export function useProviderFailureToast(): void {
  const { t } = useLocalization();
  useEffect(() => {
    if (providerFailure !== null) toast(t(providerFailure), { kind: "problem" });
    // Once, even if the language changes later.
  }, []);
}
