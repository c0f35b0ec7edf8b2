// The requests to add, use and remove passkeys. Each use has two requests: the first returns a challenge, the second
// brings the signature of the authenticator.
import { api, body, forgetToken, type Schemas, type SessionInfo } from "./client";
import { queryClient, refetchInAllTabs, sessionQuery } from "./queries";

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

function toBase64(content: ArrayBuffer): string {
  const binary = String.fromCharCode(...new Uint8Array(content));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const descriptors = (references: Schemas["PasskeyReference"][] | null): PublicKeyCredentialDescriptor[] =>
  (references ?? []).map(({ id, transports }) => ({
    type: "public-key",
    id: fromBase64(id),
    transports: (transports ?? []) as AuthenticatorTransport[],
  }));

/** Stores a renewed session, whose token replaced that of this page. */
function renew(session: SessionInfo): void {
  forgetToken();
  queryClient.setQueryData(sessionQuery.queryKey, session);
}

/** Adds a passkey to the account. Throws the DOMException of an authenticator that creates none. */
export async function addPasskey(name: string): Promise<void> {
  const options = await body(api.POST("/auth/passkeys/register/start"));
  const credential = (await navigator.credentials.create({
    publicKey: {
      rp: options.rp,
      user: { ...options.user, id: fromBase64(options.user.id) },
      challenge: fromBase64(options.challenge),
      pubKeyCredParams: options.pubKeyCredParams ?? [],
      timeout: options.timeout,
      excludeCredentials: descriptors(options.excludeCredentials),
      authenticatorSelection: options.authenticatorSelection,
      attestation: options.attestation,
    },
  })) as PublicKeyCredential;
  const response = credential.response as AuthenticatorAttestationResponse;
  const added = await body(
    api.POST("/auth/passkeys/register/finish", {
      body: {
        name,
        credential: {
          id: credential.id,
          rawId: toBase64(credential.rawId),
          type: "public-key",
          response: {
            clientDataJSON: toBase64(response.clientDataJSON),
            attestationObject: toBase64(response.attestationObject),
            transports: response.getTransports(),
          },
        },
      },
    }),
  );
  renew(added.session);
  void refetchInAllTabs("passkeys");
}

/** Asks for a signature of a passkey. Throws the DOMException of an authenticator that does not sign. */
async function sign(options: Schemas["PasskeyRequest"]): Promise<Schemas["PasskeyAssertion"]> {
  const credential = (await navigator.credentials.get({
    publicKey: {
      challenge: fromBase64(options.challenge),
      timeout: options.timeout,
      rpId: options.rpId,
      allowCredentials: descriptors(options.allowCredentials),
      userVerification: options.userVerification,
    },
  })) as PublicKeyCredential;
  const response = credential.response as AuthenticatorAssertionResponse;
  return {
    id: credential.id,
    rawId: toBase64(credential.rawId),
    type: "public-key",
    response: {
      clientDataJSON: toBase64(response.clientDataJSON),
      authenticatorData: toBase64(response.authenticatorData),
      signature: toBase64(response.signature),
      ...(response.userHandle === null ? {} : { userHandle: toBase64(response.userHandle) }),
    },
  };
}

/** Signs in with a passkey and returns the session. */
export async function signInWithPasskey(): Promise<SessionInfo> {
  const credential = await sign(await body(api.POST("/auth/passkeys/sign-in/start")));
  return body(api.POST("/auth/passkeys/sign-in/finish", { body: { credential } }));
}

/** Confirms the session with a passkey of the account. */
export async function confirmWithPasskey(): Promise<void> {
  const credential = await sign(await body(api.POST("/auth/passkeys/reauthenticate/start")));
  renew(await body(api.POST("/auth/passkeys/reauthenticate/finish", { body: { credential } })));
}

export async function renamePasskey(id: string, name: string): Promise<void> {
  await api.PATCH("/account/passkeys/{passkey_id}", { params: { path: { passkey_id: id } }, body: { name } });
  await refetchInAllTabs("passkeys");
}

export async function removePasskey(id: string): Promise<void> {
  await api.DELETE("/account/passkeys/{passkey_id}", { params: { path: { passkey_id: id } } });
  await refetchInAllTabs("passkeys");
}
