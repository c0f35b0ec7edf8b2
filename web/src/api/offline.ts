// Registers the service worker, which shows the app when the service cannot be reached.
import { trustedAddress } from "./trusted-address";
import address from "./service.worker?worker&url";

/** A notification of the worker opens its page in any tab, also in one that did not show it. */
function openNotified({ data }: MessageEvent<{ open: string }>): void {
  history.pushState(null, "", data.open); // the router follows
}

/** Another version of the worker has another address, and replaces the registration. */
export async function register(): Promise<void> {
  if (import.meta.env.DEV) return; // assets change
  navigator.serviceWorker.addEventListener("message", openNotified);
  await navigator.serviceWorker.register(trustedAddress(address), { scope: "/", updateViaCache: "none" });
}
