// The passkeys of the account, and whether this page can use passkeys.
import { queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";

export type Passkey = Schemas["Passkey"];

/** Browsers allow no passkeys at an IP address. */
export const passkeysSupported = "PublicKeyCredential" in window && !/^[\d.]+$|:/.test(location.hostname);

export const passkeysQuery = queryOptions({
  queryKey: ["passkeys"],
  queryFn: async () => (await body(api.GET("/account/passkeys"))).data ?? [],
  enabled: passkeysSupported,
});
