// Registers the service worker, which shows the app when the service cannot be reached.
import { trustedAddress } from "./trusted-address";
import address from "./service.worker?worker&url";

/** Another version of the worker has another address, and replaces the registration. */
export async function register(): Promise<void> {
  if (import.meta.env.DEV) return; // assets change
  await navigator.serviceWorker.register(trustedAddress(address), { scope: "/", updateViaCache: "none" });
}
